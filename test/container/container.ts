/**
 * A container of an image, as deploy/compose.yaml runs it: a user without rights and without capabilities, no
 * new privileges, a read-only root file system with a volume at /data and memory at /tmp, and a network of
 * its own, in which there is only loopback.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Image } from "./containerfile.ts";

/** Arguments: root, volume, user, working directory, then the program. */
const START = `set -e
ip link set lo up
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount -t tmpfs tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -o remount,bind,ro "$1"
root=$1; user=$3; workdir=$4; shift 4
exec chroot "$root" /bin/sh -c 'cd "$0" && exec setpriv --reuid '"\${user%:*}"' --regid '"\${user#*:}"' --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"' "$workdir" "$@"`;

export class Container {
  readonly #image: Image;
  readonly #process: ChildProcess;
  #output = "";

  private constructor(image: Image, child: ChildProcess) {
    this.#image = image;
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
  }

  /** @param args  in place of the image's CMD. @param volume  a folder that the image's user may write. */
  static start(image: Image, volume: string, args: readonly string[] = image.command): Container {
    const { root, user, workdir, entrypoint, env } = image;
    const child = spawn("unshare", ["--mount", "--net", "sh", "-c", START, "sh", root, volume, user, workdir, ...entrypoint, ...args], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new Container(image, child);
  }

  /** What it has printed. */
  get output(): string {
    return this.#output;
  }

  /** What the kernel says of its first process. Each program of START replaces the one before, so that is the image's own. */
  get status(): string {
    return readFileSync(`/proc/${this.#process.pid}/status`, "utf8");
  }

  /** @returns the exit code. */
  async ended(): Promise<number | null> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await once(this.#process, "exit");
    return this.#process.exitCode;
  }

  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.#process.kill(signal);
    return this.ended();
  }

  /** Runs a program inside, as the image's user. @returns what it prints. @throws {Error} when it fails. */
  run(program: readonly string[]): string {
    const pid = String(this.#process.pid);
    const [uid = "", gid = ""] = this.#image.user.split(":");
    const inside = ["--target", pid, "--mount", "--net", "--root", "--setuid", uid, "--setgid", gid, "--", ...program];
    return execFileSync("nsenter", inside, { env: this.#image.env, stdio: ["ignore", "pipe", "pipe"] }).toString();
  }
}
