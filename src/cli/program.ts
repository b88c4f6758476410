/** The command line. This folder is the only place that reads argv and the environment. */
import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { ApiClient } from "./api-client.ts";
import { backupCommand, restoreCommand } from "./backup-command.ts";
import { checkCommand } from "./check-command.ts";
import { DEMO_TABLE } from "./demo-colors.ts";
import { exportCommand } from "./export-command.ts";
import { importCommand } from "./import-command.ts";
import { keysCommand } from "./keys-command.ts";
import { DEMO_REF, demoCurl, loadDemoOverHttp } from "./load-demo.ts";
import { migrateCommand } from "./migrate-command.ts";
import { DEFAULT_PORT, serveCommand } from "./serve-command.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };

const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;

export function buildProgram(): Command {
  const program = new Command("lodestone")
    .description("Exact vector search: a data service you run yourself.")
    .version(version)
    .showHelpAfterError("(--help lists the options)")
    .configureHelp({ showGlobalOptions: true });

  serveCommand(program.command("serve"), version);
  withServer(
    program.command("demo").description("Load the demo into a running server: the 148 CSS named colours as Lab vectors in demo:main."),
  ).action(async (options: { url: string; apiKey?: string }) => {
    const client = clientOf(options);
    await loadDemoOverHttp(client);
    console.log(
      `The table "${DEMO_TABLE}" is in ${DEMO_REF.database}:${DEMO_REF.branch}. Which colours are nearest to rebeccapurple?\n\n${demoCurl(client.url)}`,
    );
  });

  withServer(importCommand(program.command("import"), clientOf));
  withServer(migrateCommand(program.command("migrate"), clientOf));
  withServer(exportCommand(program.command("export"), clientOf));
  withServer(backupCommand(program.command("backup"), clientOf));
  restoreCommand(program.command("restore"));
  checkCommand(program.command("check"));
  keysCommand(program.command("keys"));
  return program;
}

/** The options of every command that talks to a running server. */
function withServer(command: Command): Command {
  return command
    .addOption(new Option("--url <url>", "the running server").env("LODESTONE_URL").default(DEFAULT_URL))
    .addOption(new Option("--api-key <key>", "an API key, if the server requires keys").env("LODESTONE_API_KEY"));
}

function clientOf({ url, apiKey }: { url: string; apiKey?: string }): ApiClient {
  return new ApiClient(apiKey === undefined ? { url } : { url, apiKey });
}
