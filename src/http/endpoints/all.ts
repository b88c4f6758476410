/** All endpoints, in the order of the documentation. */
import type { Endpoint } from "../endpoint.ts";
import { backupEndpoints } from "./backups.ts";
import { branchEndpoints } from "./branches.ts";
import { databaseEndpoints } from "./databases.ts";
import { keyEndpoints } from "./keys.ts";
import { mcpEndpoints } from "./mcp.ts";
import { migrationEndpoints } from "./migrations.ts";
import { operationEndpoints } from "./operation.ts";
import { queryEndpoints } from "./query.ts";
import { recordEndpoints } from "./records.ts";
import { replicaEndpoints } from "./replica.ts";
import { schemaEditEndpoints } from "./schema-edits.ts";
import type { Services } from "./services.ts";
import { sqlEndpoints } from "./sql.ts";
import { tableEndpoints } from "./tables.ts";
import { textSearchEndpoints } from "./text-search.ts";
import { transactionEndpoints } from "./transaction.ts";
import { vectorSearchEndpoints } from "./vector-search.ts";
import { vectorsEndpoints } from "./vectors.ts";
import { workspaceEndpoints } from "./workspaces.ts";

export function createEndpoints(services: Services): readonly Endpoint[] {
  const endpoints: Endpoint[] = [
    ...databaseEndpoints(services),
    ...branchEndpoints(services),
    ...tableEndpoints(services),
    ...schemaEditEndpoints(services),
    ...migrationEndpoints(services),
    ...recordEndpoints(),
    ...queryEndpoints(),
    ...textSearchEndpoints(services),
    ...vectorSearchEndpoints(services),
    ...vectorsEndpoints(),
    ...replicaEndpoints(services),
    ...sqlEndpoints(),
    ...transactionEndpoints(),
    ...workspaceEndpoints(services),
    ...keyEndpoints(services),
    ...backupEndpoints(services),
    ...mcpEndpoints(services),
  ];
  return [...endpoints, ...operationEndpoints(services, endpoints)];
}
