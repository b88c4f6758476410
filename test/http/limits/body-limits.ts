/** Limits of a request's body, whatever its purpose. */
import type { Answer } from "../../support/server.ts";
import { api, type Limit, nested, TABLE } from "./limit.ts";

/** For a body that is refused for its content: only whether it got that far. */
const letThrough = (answer: Answer, refusal: RegExp): Answer =>
  answer.status === 400 && !refusal.test(answer.body.message) ? { ...answer, status: 200, body: {} } : answer;

const object = (keys: number): string => `{${Array.from({ length: keys }, (_, i) => `"k${i}":1`).join(",")}}`;

/** A vector search whose query has `values` and the like, refused at once for its dimension. */
const unusable = async (elements: string): Promise<Answer> =>
  letThrough(
    await api.server.post(`${TABLE}/vectorSearch`, `{"column":"v","queryVector":[${elements}]}`),
    /: it holds|: the object has|has a key of/,
  );

export const BODY_LIMITS: Limit[] = [
  {
    documented: "size of a request body",
    value: "20,971,520 bytes",
    max: 20_971_520,
    request: (n) => api.server.post(`${TABLE}/data`, '{"n": 1}'.padEnd(n)),
    refusal: "larger than 20,971,520 bytes",
    status: 413,
  },
  {
    documented: "nesting of arrays and objects in a body",
    value: "100 levels",
    max: 100,
    request: (n) => api.server.post(`${TABLE}/data`, `{"j": ${nested(n - 1, "[", "]")}}`),
    refusal: "nested deeper than 100 levels",
  },
  {
    documented: "keys of all objects in a body",
    value: "250,000",
    max: 250_000,
    // `column` and `queryVector` are two of them. No object may have so many.
    request: (n) => unusable(`[${Array.from({ length: 10 }, (_, i) => object(Math.floor((n - 2 + i) / 10))).join(",")}]`),
    refusal: "it holds 250,001 keys; at most 250,000 are accepted",
  },
  {
    documented: "keys of one object in a body",
    value: "50,000",
    max: 50_000,
    request: (n) => unusable(object(n)),
    refusal: "queryVector[0]: the object has more than 50,000 keys",
  },
  {
    documented: "length of a key in a body",
    value: "262,144 UTF-16 units",
    max: 262_144,
    request: (n) => unusable(`{"${"k".repeat(n)}":1}`),
    refusal: "The body has a key of 262,145 characters; at most 262,144 are allowed",
  },
  {
    documented: "arrays and objects in a body",
    value: "1,000,000",
    max: 1_000_000,
    request: (n) => unusable(`${"[],".repeat(n - 3)}[]`),
    refusal: "it holds 1,000,001 objects and lists; at most 1,000,000 are accepted",
  },
  {
    documented: "values in all arrays and objects of a body",
    value: "4,000,000",
    max: 4_000_000,
    request: (n) => unusable(`${"1,".repeat(n - 3)}1`),
    refusal: "it holds 4,000,001 values; at most 4,000,000 are accepted",
  },
];
