/** The image of deploy/Containerfile: built by its own steps, and run as deploy/compose.yaml does. */
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { makeBaseImage, npmCache, npmEnvironment } from "./base-image.ts";
import { Container } from "./container.ts";
import { buildImage, type Image } from "./containerfile.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** Asks the server inside, by a program inside. */
const ASK = `const [method, path, key, body] = process.argv.slice(1);
fetch("http://127.0.0.1:8787" + path, { method, body: body || undefined, headers: { authorization: "Bearer " + key, "content-type": "application/json" } })
  .then(async (answer) => console.log(JSON.stringify({ status: answer.status, body: await answer.json().catch(() => undefined) })));`;

describeWith("containers", "The image", (dpkgQuery) => {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-container-"));
  const volume = join(directory, "volume");
  let image: Image;
  let container: Container | undefined;
  let key: string;

  beforeAll(async () => {
    const base = join(directory, "base");
    makeBaseImage(dpkgQuery, base);
    const containerfile = join(repository, "deploy/Containerfile");
    image = buildImage({ containerfile, context: repository, base, directory, buildEnv: npmEnvironment(base), npmCache: npmCache() });
    mkdirSync(volume);
    // As an engine does with a new volume: it gets the owner of the image's folder.
    chownSync(volume, 10_001, 10_001);
    const keys = Container.start(image, volume, ["keys", "create", "test", "--scope", "admin", "--file", "/data/keys.json"]);
    expect([await keys.ended(), keys.output]).toEqual([0, expect.stringMatching(/\S+/)]);
    key = keys.output.trim().split("\n").at(-1)!;
    container = start();
    await untilHealthy();
  });
  afterAll(async () => {
    await container?.stop("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  });

  const start = (): Container => Container.start(image, volume, [...image.command, "--demo", "--key-file", "/data/keys.json"]);
  const untilHealthy = () =>
    until(
      () => `the container is healthy: ${container?.output}`,
      () => {
        try {
          container!.run(image.healthCheck);
          return true;
        } catch {
          return false;
        }
      },
      200,
    );
  const ask = (method: string, path: string, body?: object) =>
    JSON.parse(container!.run(["node", "-e", ASK, method, path, key, body === undefined ? "" : JSON.stringify(body)]));

  it("runs as an unprivileged user, on a read-only file system", () => {
    const { status } = container!;
    expect(status).toMatch(/^Uid:\s+10001\s+10001\s/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^CapBnd:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    for (const path of ["/x", "/opt/lodestone/x", "/opt/lodestone/dist/x", "/usr/x"]) {
      expect(() => container!.run(["sh", "-c", `echo x > ${path}`])).toThrow();
    }
    container!.run(["sh", "-c", "echo x > /data/x && rm /data/x"]);
  });

  it("contains only what it needs at run time: no sources, no tests, no build tools", () => {
    const files = container!.run(["sh", "-c", "ls /opt/lodestone /opt/lodestone/node_modules"]).split(/\s+/);
    expect(files).toEqual(expect.arrayContaining(["dist", "node_modules", "package.json", "koa", "pg"]));
    for (const name of ["src", "test", "vitest", "typescript", "assemblyscript"]) expect(files).not.toContain(name);
  });

  it("answers searches of the demo, and keeps what is written through a restart", async () => {
    const search = { column: "lab", queryVector: [32.902, 42.883, -47.149], similarityFunction: "l2", size: 3, consistency: "strong" };
    const found = ask("POST", "/db/demo:main/tables/colors/vectorSearch", search);
    expect([found.status, found.body.results[0]]).toEqual([200, { id: "rebeccapurple", score: 1 }]);
    expect(ask("PUT", "/db/demo:main/tables/colors/data/mine", { hex: "#123456", lab: [1, 2, 3] }).status).toBe(201);
    expect(await container!.stop()).toBe(0);
    container = start();
    await untilHealthy();
    expect(ask("GET", "/db/demo:main/tables/colors/data/mine")).toMatchObject({ status: 200, body: { hex: "#123456" } });
    expect(ask("POST", "/db/demo:main/tables/colors/vectorSearch", search).body).toEqual({
      ...found.body,
      totalCount: found.body.totalCount + 1,
    });
  });

  it("refuses callers without a key", () => {
    expect(JSON.parse(container!.run(["node", "-e", ASK, "GET", "/dbs", "wrong"])).status).toBe(401);
  });
});
