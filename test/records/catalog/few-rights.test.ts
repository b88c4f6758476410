import { afterAll, beforeAll, expect, test } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { Engine } from "../../../src/records/engine/engine.ts";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { describeWith } from "../../support/requirements.ts";

describeWith("postgresql", "The catalog on a server where its user has few rights", (bin) => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres(bin);
  });
  afterAll(() => server.stop());

  /** A database owned by a user of its own, who has these rights and no others. */
  const openAs = async (user: string, rights: string): Promise<Engine> => {
    const url = new URL(await server.createDatabase());
    const admin = await openEngine({ databaseUrl: url.href });
    await admin.query(`CREATE ROLE ${user} LOGIN ${rights}`);
    if (rights !== "") await admin.query(`ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${user}`);
    await admin.close();
    url.username = user;
    return openEngine({ databaseUrl: url.href });
  };

  test("CREATEROLE and a database of its own are enough", async () => {
    const engine = await openAs("enough", "CREATEROLE");
    const catalog = await Catalog.open(engine);
    const ref = { database: "d", branch: "main" };
    await catalog.createBranch(ref);
    await catalog.change(ref, (editor) => editor.createTable("t", [{ name: "n", type: "int" }]));
    const { schemaName, roleName } = await catalog.branch(ref);
    await engine.transaction((connection) => connection.query("INSERT INTO t (n) VALUES (1)"), { jail: { schemaName, roleName } });
    await catalog.createBranch({ database: "d", branch: "copy" }, { from: "main" });
    await catalog.dropDatabase("d");
    await catalog.close();
    await engine.close();
  });

  test("with less, the message says what is missing", async () => {
    const message = /needs CREATE on the database, and CREATEROLE/;
    const poor = await openAs("poor", "");
    await expect(Catalog.open(poor)).rejects.toMatchObject({ code: "UNAVAILABLE", message });
    await poor.close();
    const noRoles = await openAs("no_roles", "NOCREATEROLE");
    const catalog = await Catalog.open(noRoles);
    await expect(catalog.createBranch({ database: "d", branch: "main" })).rejects.toMatchObject({ code: "UNAVAILABLE", message });
    expect(await catalog.listDatabases()).toEqual([]);
    await catalog.close();
    await noRoles.close();
  });
});
