/**
 * One suite of vector search for every engine that can hold the vectors: this process, servers that hold a
 * part each, and another PostgreSQL with pgvector.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { SEARCH_SERVERS } from "../support/pgvector.ts";
import { describeLater, describeOnce, describeWith } from "../support/requirements.ts";
import { describeAnswers } from "./vector-search/answers.ts";
import { describeBeside } from "./vector-search/beside.ts";
import { describeExhaustive } from "./vector-search/exhaustive.ts";
import { describeRefusals } from "./vector-search/refusals.ts";
import { describeScores } from "./vector-search/scores.ts";
import { SearchClient, type SearchService, startOne, startOnSearchUrl, startParts } from "./vector-search/search-service.ts";
import { describeWordsToo } from "./vector-search/words-too.ts";

function describeVectorSearch(start: () => Promise<SearchService>, holdsAll = false): void {
  let service: SearchService;
  const client = new SearchClient(() => service);
  beforeAll(async () => {
    service = await start();
    await client.createBranch();
  });
  afterAll(() => service?.stop());
  describeScores(client);
  describeAnswers(client);
  describeExhaustive(client);
  describeBeside(client);
  describeWordsToo(client, holdsAll);
  describeRefusals(client);
}

describeOnce("Vector search over memory", () => describeVectorSearch(() => startOne(), true));

for (const [name, start] of SEARCH_SERVERS)
  describeLater(`Vector search over ${name}`, () => describeVectorSearch(() => startOnSearchUrl(start)));

describeWith("postgresql", "Vector search over parts", (bin) => {
  for (const parts of [2, 4]) describe(`of which there are ${parts}`, () => describeVectorSearch(() => startParts(bin, parts)));
});
