/** A column's vectors in bulk, as streamed bytes: for a page or a notebook that searches many vectors itself. */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import type { VectorPage, VectorsRequest } from "../../records/requests.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { COLUMN_NAME, FILTER, objectOf } from "../schemas.ts";

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
        schema: objectOf<VectorsBody>(
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

const VECTOR_ROWS_TYPE = "application/vnd.lodestone.vectors";

const PREFIX_BYTES = 8;

const rowsBlock = ({ ids, values, elements }: VectorPage): Buffer => block(ids.length, { ids, values }, elements);

const lastBlock = (rows: number, more: boolean): Buffer => block(0, { rows, more }, new Float32Array(0));

/**
 * Vectors as bytes, in blocks that can be read one by one. Everything is little-endian. A block:
 *
 *     uint32 rows | uint32 bytes of the header | the header, as JSON, padded with spaces to a multiple of 4 | float32 × rows × dimension, row-major
 *
 * The header of a block of rows is `{"ids": […], "values": […]}` (values only if a column was requested). The last
 * block has no rows, and the header `{"rows": …, "more": …}`: how many rows came, and whether the limit left some out.
 * Bytes that end without it were cut off.
 */
function block(rows: number, head: object, elements: Float32Array): Buffer {
  const text = JSON.stringify(head);
  const length = Buffer.byteLength(text);
  const headBytes = Math.ceil(length / 4) * 4;
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + headBytes + 4 * elements.length);
  bytes.writeUInt32LE(rows, 0);
  bytes.writeUInt32LE(headBytes, 4);
  bytes.write(text, PREFIX_BYTES);
  bytes.fill(" ", PREFIX_BYTES + length, PREFIX_BYTES + headBytes);
  // All machines that run Node are little-endian, except s390x.
  const at = PREFIX_BYTES + headBytes;
  if (isLittleEndian) bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength), at);
  else for (let i = 0; i < elements.length; i++) bytes.writeFloatLE(elements[i]!, at + 4 * i);
  return bytes;
}

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
