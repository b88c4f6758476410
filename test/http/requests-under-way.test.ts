/** Which requests are under way: against a model, in many orders. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { connectionOf } from "../../src/http/connections/client-connection.ts";
import { RequestsUnderWay } from "../../src/http/requests-under-way.ts";

const connection = connectionOf(new Socket());
const answer = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()));

test("are those that have begun and whose answers have not closed", () => {
  // A number closes that answer of those that are open; null begins a request.
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant(null), fc.nat(20)), { maxLength: 60 }), (steps) => {
      const underWay = new RequestsUnderWay();
      const expected: ServerResponse[] = [];
      for (const step of steps) {
        if (step === null) expected.push(underWay.begin(connection, answer()).response);
        else expected.splice(step % Math.max(1, expected.length), 1)[0]?.emit("close");
        const listed = underWay.list().map(({ response }) => response);
        expect(listed).toHaveLength(expected.length);
        expect(new Set(listed)).toEqual(new Set(expected));
      }
    }),
  );
});
