/** A column's vectors in bulk, as streamed bytes: for a page or a notebook that searches many vectors itself. */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import type { VectorPage, VectorsRequest } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_NAME, FILTER, objectOf } from "../schemas.ts";
import { lastBlock, rowsBlock, VECTOR_ROWS_TYPE } from "../vector-rows.ts";

type VectorsBody = Omit<VectorsRequest, "after">;

export function vectorsEndpoints(): Endpoint[] {
  return [
    endpoint<VectorsBody>({
      method: "POST",
      path: "/db/{db}:{branch}/tables/{table}/vectors",
      name: "readVectors",
      summary: "The vectors of a column, as binary",
      tag: "Search and query",
      access: "read",
      body: {
        required: true,
        schema: objectOf(
          {
            column: COLUMN_NAME,
            filter: FILTER,
            values: {
              ...COLUMN_NAME,
              description:
                "A column with a single value per record (a string, number, date, link or boolean) whose values are returned as text, each cut at 200 characters.",
            },
            limit: { type: "integer", minimum: 1, description: "Maximum number of records. Default: all that have a vector." },
          },
          ["column"],
        ),
      },
      responses: {
        200: {
          description:
            "Records in the order of their ids, in blocks, little-endian: uint32 rows, uint32 bytes of the header, the header as JSON " +
            '`{"ids": […], "values": […]}` padded to a multiple of 4, then float32 × rows × dimension, row-major. The last block has no rows and the header ' +
            '`{"rows": …, "more": …}`; bytes that end without it were cut off. A record that is written meanwhile is returned as it was before or after.',
          contentType: VECTOR_ROWS_TYPE,
        },
      },
      async handle({ records, ref, path, body, budget }) {
        const read = (after: string | undefined, left: number | undefined): Promise<VectorPage> =>
          records.readVectors(ref, path.table as string, {
            ...body,
            ...(after === undefined ? {} : { after }),
            ...(left === undefined ? {} : { limit: left }),
          });
        const giveBack = budget.mark();
        // Finds errors of the request before anything is answered.
        const first = await read(undefined, body.limit);
        return { status: 200, stream: blocks(first, read, body.limit, budget, giveBack), contentType: VECTOR_ROWS_TYPE };
      },
    }),
  ];
}

/** A page is charged while it is held: its charge is given back when the next page is requested. */
async function* blocks(
  first: VectorPage,
  read: (after: string | undefined, left: number | undefined) => Promise<VectorPage>,
  limit: number | undefined,
  budget: AnswerBudget,
  giveBackFirst: () => void,
): AsyncGenerator<Buffer, void, undefined> {
  let page = first;
  let giveBack = giveBackFirst;
  let rows = 0;
  for (;;) {
    if (page.ids.length > 0) yield rowsBlock(page);
    rows += page.ids.length;
    const left = limit === undefined ? undefined : limit - rows;
    if (!page.hasMore || left === 0) break;
    giveBack();
    giveBack = budget.mark();
    page = await read(page.ids.at(-1), left);
  }
  yield lastBlock(rows, page.hasMore);
}
