/** `lodestone keys`: makes, lists and revokes the keys of a key file. */
import { type Command, Option } from "commander";
import { createKey, readKeyFile, revokeKey } from "../http/keys/key-file.ts";
import { SCOPES, type Scope } from "../key-scopes.ts";

export function keysCommand(keys: Command): void {
  keys.description("Make, list and revoke the API keys of a key file. A running server sees changes within seconds.");
  const file = () => new Option("--file <file>", "the key file").env("LODESTONE_KEY_FILE").default("./lodestone-keys.json");
  keys
    .command("create")
    .description("Make a key and print it, once: the file keeps only its hash.")
    .argument("<name>", "a name to know the key by, in logs and lists")
    .addOption(file())
    .addOption(new Option("--scope <scope>", "what it may do").choices(SCOPES).makeOptionMandatory())
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
    .description("Make a key worthless.")
    .argument("<name>")
    .addOption(file())
    .action(async (name: string, options: { file: string }) => {
      await revokeKey(options.file, name);
      console.log(`The key "${name}" is revoked.`);
    });
}
