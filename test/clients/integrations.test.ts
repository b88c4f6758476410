/** Published integrations with the retired service: LangChain's store, Auth.js's adapter, and Drizzle's ids. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

describeWith("clients", "integrations", (modules) => {
  const require = createRequire(modules);
  /** By its path in the folder of packages: what is exported for `import` alone cannot be resolved from here. */
  const load = (path: string) => import(new URL(path, pathToFileURL(modules)).href);
  let server: TestServer;
  // biome-ignore lint/suspicious/noExplicitAny: the published client's types are for generated code
  let clientOf: (database: string) => any;

  beforeAll(async () => {
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    const { BaseClient } = require("@xata.io/client");
    clientOf = (database) =>
      new BaseClient({ databaseURL: `http://w.r.localhost:${server.port}/db/${database}`, branch: "main", apiKey: "none" });
  });
  afterAll(() => server?.stop());

  const createTables = async (database: string, tables: Readonly<Record<string, readonly object[]>>): Promise<void> => {
    await server.put(`/db/${database}:main`, {});
    for (const table of Object.keys(tables)) await server.put(`/db/${database}:main/tables/${table}`, {});
    for (const [table, columns] of Object.entries(tables)) {
      expect((await server.put(`/db/${database}:main/tables/${table}/schema`, { columns })).status).toBe(200);
    }
  };

  test("LangChain's vector store adds, searches with a filter and deletes", async () => {
    await createTables("chain", {
      vectors: [
        { name: "content", type: "text" },
        { name: "embedding", type: "vector", vector: { dimension: 3 } },
        { name: "author", type: "string" },
      ],
    });
    const { XataVectorSearch } = await load("@langchain/community/dist/vectorstores/xata.js");
    /** A letter's share of the text, for three letters. */
    const embed = (text: string) => ["a", "b", "c"].map((letter) => text.split(letter).length - 1);
    const embeddings = { embedDocuments: async (texts: string[]) => texts.map(embed), embedQuery: async (text: string) => embed(text) };
    const store = new XataVectorSearch(embeddings, { client: clientOf("chain"), table: "vectors", createTable: false });
    const ids = await store.addDocuments([
      { pageContent: "aaab", metadata: { author: "x" } },
      { pageContent: "bbb", metadata: { author: "x" } },
      { pageContent: "aab", metadata: { author: "y" } },
    ]);
    expect(ids).toHaveLength(3);
    const found = await store.similaritySearchWithScore("aab", 2, { author: "x" });
    expect(found).toMatchObject([
      [{ pageContent: "aaab", metadata: { author: "x" } }, expect.closeTo(1 + 7 / Math.sqrt(50), 6)],
      [{ pageContent: "bbb" }, expect.any(Number)],
    ]);
    await store.delete({ ids: [ids[0]] });
    expect((await store.similaritySearch("aab", 4)).map(({ pageContent }: { pageContent: string }) => pageContent)).toEqual(["aab", "bbb"]);
  });

  test("Drizzle's serial is the text that the service gives", async () => {
    await createTables("drizzle", { pets: [{ name: "name", type: "string" }] });
    const { drizzle } = require("@xata.io/drizzle");
    const { pgTable, serial, text } = require("drizzle-orm/pg-core");
    const { buildClient } = require("@xata.io/client");
    const databaseURL = `http://w.r.localhost:${server.port}/db/drizzle`;
    const db = drizzle(new (buildClient())({ databaseURL, branch: "main", apiKey: "none" }, [{ name: "pets", columns: [] }]));
    for (const id of [serial("id"), text("id")]) {
      const pets = pgTable("pets", { id: id.primaryKey(), name: text("name") });
      const inserted = await db.insert(pets).values({ name: "Otis" }).returning();
      expect(inserted).toEqual([{ id: expect.stringMatching(/^rec_/), name: "Otis" }]);
    }
    await expect(db.execute("CREATE TABLE cats (id serial PRIMARY KEY)")).rejects.toThrow();
  });

  test("Auth.js's adapter keeps users, accounts, sessions and tokens", async () => {
    const user = { name: "user", type: "link", link: { table: "nextauth_users" } };
    const texts = (...names: string[]) => names.map((name) => ({ name, type: "string" }));
    // As the adapter's documentation gives them.
    await createTables("auth", {
      nextauth_users: [{ name: "email", type: "email" }, { name: "emailVerified", type: "datetime" }, ...texts("name", "image")],
      nextauth_accounts: [
        user,
        ...texts("type", "provider", "providerAccountId", "refresh_token", "access_token", "token_type", "scope", "session_state"),
        { name: "expires_at", type: "int" },
        { name: "id_token", type: "text" },
      ],
      nextauth_verificationTokens: [...texts("identifier", "token"), { name: "expires", type: "datetime" }],
      nextauth_users_accounts: [user, { name: "account", type: "link", link: { table: "nextauth_accounts" } }],
      nextauth_users_sessions: [user, { name: "session", type: "link", link: { table: "nextauth_sessions" } }],
      nextauth_sessions: [...texts("sessionToken"), { name: "expires", type: "datetime" }, user],
    });
    const { XataAdapter } = await load("@auth/xata-adapter/index.js");
    const adapter = XataAdapter(clientOf("auth"));
    const ada = await adapter.createUser({ email: "ada@example.com", emailVerified: null, name: "Ada" });
    expect(await adapter.getUser(ada.id)).toMatchObject({ id: ada.id, name: "Ada" });
    expect(await adapter.getUser("nobody")).toBeNull();
    expect(await adapter.getUserByEmail("ada@example.com")).toMatchObject({ id: ada.id });
    expect(await adapter.updateUser({ id: ada.id, name: "Ada L." })).toMatchObject({ name: "Ada L.", email: "ada@example.com" });

    const account = { provider: "github", providerAccountId: "7", type: "oauth", userId: ada.id, expires_at: 1_800_000_000 };
    await adapter.linkAccount(account);
    expect(await adapter.getUserByAccount({ provider: "github", providerAccountId: "7" })).toMatchObject({ id: ada.id });

    const expires = new Date("2030-01-02T03:04:05.678Z");
    await adapter.createSession({ sessionToken: "token", userId: ada.id, expires });
    expect(await adapter.getSessionAndUser("token")).toMatchObject({
      session: { userId: ada.id, expires },
      user: { email: "ada@example.com" },
    });
    const later = new Date("2031-01-02T03:04:05.678Z");
    await adapter.updateSession({ sessionToken: "token", expires: later });
    expect((await adapter.getSessionAndUser("token")).session.expires).toEqual(later);
    await adapter.deleteSession("token");
    expect(await adapter.getSessionAndUser("token")).toBeNull();

    await adapter.createVerificationToken({ identifier: "ada@example.com", token: "once", expires });
    const use = { identifier: "ada@example.com", token: "once" };
    expect(await adapter.useVerificationToken(use)).toMatchObject(use);
    expect(await adapter.useVerificationToken(use)).toBeNull();

    await adapter.unlinkAccount({ provider: "github", providerAccountId: "7" });
    expect(await adapter.getUserByAccount({ provider: "github", providerAccountId: "7" })).toBeNull();
    await adapter.deleteUser(ada.id);
    expect(await adapter.getUser(ada.id)).toBeNull();
  });
});
