/**
 * Carries out a Containerfile's steps in root file systems of our own, by chroot, so that no registry is
 * needed: FROM, ARG, ENV, WORKDIR, COPY, RUN, USER, ENTRYPOINT, CMD and HEALTHCHECK as deploy/Containerfile
 * uses them. It throws at anything else.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { linesOf } from "./base-image.ts";

export interface Image {
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

type Stage = { -readonly [Key in keyof Image]: Image[Key] };

export interface BuildOptions {
  readonly containerfile: string;
  /** What COPY copies from, without what its .dockerignore names. */
  readonly context: string;
  /** The root file system that every FROM of an image begins with. */
  readonly base: string;
  /** Where stages are made. */
  readonly directory: string;
  /** For RUN, besides what ENV says; not part of the image. */
  readonly buildEnv: Readonly<Record<string, string>>;
  /** The folder of this machine that is npm's cache during RUN; not part of the image. */
  readonly npmCache: string;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** They say something about the image that nothing here depends on. */
const NOTES = ["ARG", "VOLUME", "EXPOSE", "STOPSIGNAL"];

export function buildImage(options: BuildOptions): Image {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const line of linesOf(options.containerfile)) {
    const [, instruction = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (NOTES.includes(instruction)) continue;
    if (instruction === "FROM") {
      const name = / AS (\w+)$/.exec(rest)?.[1] ?? `stage-${stages.size}`;
      stage = newStage(join(options.directory, name), options.base);
      stages.set(name, stage);
      continue;
    }
    if (stage === undefined) throw new Error(`before the first FROM: ${line}`);
    carryOut(stage, instruction, rest, stages, options);
  }
  if (stage === undefined) throw new Error("no FROM");
  return stage;
}

function newStage(root: string, base: string): Stage {
  execFileSync("cp", ["-a", "--reflink=auto", base, root]);
  return { root, env: { PATH }, workdir: "/", user: "0:0", entrypoint: [], command: [], healthCheck: [] };
}

function carryOut(stage: Stage, instruction: string, rest: string, stages: Map<string, Stage>, options: BuildOptions): void {
  switch (instruction) {
    case "ENV":
      stage.env = { ...stage.env, ...Object.fromEntries(rest.split(/\s+/).map((pair) => pair.split("=") as [string, string])) };
      return;
    case "WORKDIR":
      stage.workdir = rest;
      mkdirSync(join(stage.root, rest), { recursive: true });
      return;
    case "USER":
      stage.user = rest;
      return;
    case "RUN":
      run(stage, rest, options);
      return;
    case "COPY":
      copy(stage, rest.split(/\s+/), stages, options.context);
      return;
    case "ENTRYPOINT":
      stage.entrypoint = JSON.parse(rest) as string[];
      return;
    case "CMD":
      stage.command = JSON.parse(rest) as string[];
      return;
    case "HEALTHCHECK":
      stage.healthCheck = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4)) as string[];
      return;
    default:
      throw new Error(`${instruction} is not known here: ${rest}`);
  }
}

function run({ root, env, workdir }: Stage, command: string, { buildEnv, npmCache }: BuildOptions): void {
  // In a mount namespace of its own, so that nothing stays mounted.
  const script =
    'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/root" && mkdir "$1/root/.npm" && ' +
    'mount --bind "$4" "$1/root/.npm" && exec chroot "$1" /bin/sh -c "cd $2 && $3"';
  execFileSync("unshare", ["--mount", "sh", "-c", script, "sh", root, workdir, command, npmCache], {
    env: { ...buildEnv, ...env, HOME: "/root" },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

function copy({ root, workdir }: Stage, args: string[], stages: Map<string, Stage>, context: string): void {
  const flags = args.filter((arg) => arg.startsWith("--"));
  const paths = args.filter((arg) => !arg.startsWith("--"));
  const target = resolve(join(root, workdir), paths.at(-1)!.startsWith("/") ? join(root, paths.at(-1)!) : paths.at(-1)!);
  const from = flags.find((flag) => flag.startsWith("--from="))?.slice("--from=".length);
  const isKept = from === undefined ? keeps(context) : () => true;
  for (const path of paths.slice(0, -1)) {
    const source = join(from === undefined ? context : stages.get(from)!.root, path);
    const isFolder = paths.at(-1)!.endsWith("/");
    cpSync(source, isFolder ? join(target, path) : target, { recursive: true, verbatimSymlinks: true, filter: isKept });
  }
}

/** What .dockerignore leaves: its patterns are paths, and `*` for the beginning of a name. */
function keeps(context: string): (path: string) => boolean {
  const patterns = linesOf(join(context, ".dockerignore"));
  return (path) => {
    const name = relative(context, path);
    return !patterns.some((pattern) =>
      pattern.startsWith("*") ? !name.includes("/") && name.endsWith(pattern.slice(1)) : name === pattern,
    );
  };
}
