/** `lodestone keys`: creates, lists and revokes the keys of a key file. */
import { type Command, Option } from "commander";
import { createKey, readKeyFile, revokeKey } from "../http/keys/key-file.ts";
import { SCOPES, type Scope } from "../key-scopes.ts";

export function keysCommand(keys: Command): void {
  keys.description("Create, list and revoke the API keys of a key file. A running server sees changes within seconds.");
  const file = () => new Option("--file <file>", "the key file").env("LODESTONE_KEY_FILE").default("./lodestone-keys.json");
  keys
    .command("create")
    .description("Create a key and print it. It is shown only once: the file keeps only its hash.")
    .argument("<name>", "a name that identifies the key in logs and lists")
    .addOption(file())
    .addOption(new Option("--scope <scope>", "what the key may do").choices(SCOPES).makeOptionMandatory())
    .option("--database <name>", "limit it to this database (repeatable)", (value: string, previous: string[] = []) => [...previous, value])
    .action(async (name: string, options: { file: string; scope: Scope; database?: string[] }) => {
      console.log(await createKey(options.file, name, options.scope, options.database));
    });
  keys
    .command("list")
    .description("List the keys: names, scopes, databases and dates.")
    .addOption(file())
    .action(async (options: { file: string }) => {
      for (const { name, scope, databases, createdAt } of await readKeyFile(options.file)) {
        console.log([name, scope, databases?.join(",") ?? "all databases", createdAt].join("\t"));
      }
    });
  keys
    .command("revoke")
    .description("Revoke a key: from then on it is refused.")
    .argument("<name>")
    .addOption(file())
    .action(async (name: string, options: { file: string }) => {
      await revokeKey(options.file, name);
      console.log(`The key "${name}" is revoked.`);
    });
}
