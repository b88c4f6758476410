/** The command line. This folder is the only place that reads argv and the environment. */
import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { ApiClient, DEFAULT_PORT } from "./api-client.ts";
import { buildInWords } from "./build-identity.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };

interface ListedCommand {
  /** What the list of commands says. The command's own help says the rest. */
  readonly summary: string;
  /** Imports the command, which adds its description, arguments, options and action. */
  readonly load: (command: Command) => Promise<void>;
}

const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  serve: {
    summary: "Run the server.",
    load: async (command) => (await import("./serve-command.ts")).serveCommand(command, version),
  },
  demo: {
    summary: "Load the demo into a running server: the 148 CSS named colours as vectors.",
    load: async (command) => withServer(command, (await import("./demo-command.ts")).demoCommand),
  },
  import: {
    summary: "Load a file into a table of a running server, or a folder into a branch.",
    load: async (command) => withServer(command, (await import("./import-command.ts")).importCommand),
  },
  migrate: {
    summary: "Move a whole database of the retired service into a running server.",
    load: async (command) => withServer(command, (await import("./migrate-command.ts")).migrateCommand),
  },
  export: {
    summary: "Write a table of a running server, or all tables of a branch, as JSON Lines.",
    load: async (command) => withServer(command, (await import("./export-command.ts")).exportCommand),
  },
  mcp: {
    summary: "Give an agent the tools to search and read a running server (Model Context Protocol, stdio).",
    async load(command) {
      const { mcpCommand } = await import("./mcp-command.ts");
      withServer(command, () => mcpCommand(command, version));
    },
  },
  backup: {
    summary: "Back up the database of a running server (embedded only).",
    load: async (command) => withServer(command, (await import("./backup-command.ts")).backupCommand),
  },
  restore: {
    summary: "Make a new data directory from a backup.",
    load: async (command) => void (await import("./backup-command.ts")).restoreCommand(command),
  },
  check: {
    summary: "Verify the records and the search snapshots of a stopped server.",
    load: async (command) => void (await import("./check-command.ts")).checkCommand(command),
  },
  keys: {
    summary: "Create, list and revoke the API keys of a key file.",
    load: async (command) => void (await import("./keys-command.ts")).keysCommand(command),
  },
};

export function buildProgram(): Command {
  const program = new Command("lodestone")
    .description("Exact vector search: a data service you run yourself.")
    .version(buildInWords(version))
    .showHelpAfterError("(--help lists the options)")
    .configureHelp({ showGlobalOptions: true, subcommandTerm: (command) => command.name() })
    .hook("preSubcommand", (_program, command) => COMMANDS[command.name()]?.load(command))
    .helpCommand(false);
  for (const [name, { summary }] of Object.entries(COMMANDS)) program.command(name).summary(summary);
  // Commander's own would not import the command.
  program
    .command("help")
    .argument("[command...]")
    .summary("Describe a command and its options, as <command> --help does.")
    .action(async (names: string[]) => void (await program.parseAsync([...names, "--help"], { from: "user" })));
  return program;
}

interface ServerOptions {
  readonly url: string;
  readonly apiKey?: string;
}

/** A command that talks to a running server. */
function withServer(command: Command, add: (command: Command, clientOf: (options: ServerOptions) => ApiClient) => Command): void {
  add(command, ({ url, apiKey }) => new ApiClient(apiKey === undefined ? { url } : { url, apiKey }))
    .addOption(new Option("--url <url>", "the running server").env("LODESTONE_URL").default(`http://127.0.0.1:${DEFAULT_PORT}`))
    .addOption(new Option("--api-key <key>", "an API key, if the server requires keys").env("LODESTONE_API_KEY"));
}
