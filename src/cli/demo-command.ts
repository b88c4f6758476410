/** `lodestone demo`: loads the demo into a running server, and says what to ask it. */
import type { Command } from "commander";
import type { ApiClient } from "./api-client.ts";
import { DEMO_TABLE } from "./demo-colors.ts";
import { DEMO_REF, demoCurl, loadDemoOverHttp } from "./load-demo.ts";

export function demoCommand(command: Command, clientOf: (options: { url: string; apiKey?: string }) => ApiClient): Command {
  return command
    .description("Load the demo into a running server: the 148 CSS named colours as Lab vectors in demo:main.")
    .action(async (options: { url: string; apiKey?: string }) => {
      const client = clientOf(options);
      await loadDemoOverHttp(client);
      console.log(
        `The table "${DEMO_TABLE}" is in ${DEMO_REF.database}:${DEMO_REF.branch}. Which colours are nearest to rebeccapurple?\n\n${demoCurl(client.url)}`,
      );
    });
}
