/**
 * The program of one worker of a ParallelVectorIndex. It has a shard and the ids of its rows. The ids decide
 * between equal scores and are sent with the answers, so an answer is right even if a row gets another id
 * while it is on its way. Runs in worker_threads and in Web Workers. It is shipped as one script, as text
 * inside the library and as a file (scripts/build.mjs), so it has no top-level await and no remaining
 * imports.
 */

import { compareText } from "../text/code-point-order.ts";
import { describeError } from "../threads/worker-calls.ts";
import { createShardOf } from "./create-shard.ts";
import { DeferredCoding } from "./deferred-coding.ts";
import { nodeModule } from "./node-modules.ts";
import { scoreRows } from "./score-rows.ts";
import type { ShardReply, ShardRequest } from "./shard-messages.ts";
import { ThresholdExchange } from "./threshold-exchange.ts";
import { openInFolder } from "./vector-file.ts";
import type { VectorShard } from "./vector-shard.ts";
import { VectorStore } from "./vector-store.ts";

const ids: string[] = [];
let shard: VectorShard | undefined;
let coding: DeferredCoding | undefined;
let image: Iterator<Uint8Array> | undefined;
let loader: Generator<undefined, void, Uint8Array> | undefined;

async function handle(request: ShardRequest): Promise<unknown> {
  if (request.type === "open") {
    const { vectors } = request;
    shard = await createShardOf(request.module, {
      dimension: request.dimension,
      vectors: vectors && new VectorStore(await openInFolder(vectors.folder, vectors.name)),
      maximumMemoryBytes: request.maximumMemoryBytes,
      isIdBefore: (a, b) => compareText(ids[a]!, ids[b]!) < 0,
    });
    coding = new DeferredCoding(shard);
    return { build: shard.build, isOutside: shard.isOutside };
  }
  if (shard === undefined) throw new Error("The worker was not opened.");
  switch (request.type) {
    case "set": {
      const { rows, matrix, isDeferred } = request;
      if (isDeferred) coding?.begin();
      const d = shard.dimension;
      shard.reserve(rows.reduce((most, row) => Math.max(most, row + 1), 0));
      rows.forEach((row, i) => {
        shard?.set(row, matrix.subarray(i * d, (i + 1) * d), isDeferred);
        ids[row] = request.ids[i]!;
      });
      return undefined;
    }
    case "clear":
      for (const row of request.rows) shard.clear(row);
      return undefined;
    case "read": {
      const matrix = new Float32Array(request.rows.length * shard.dimension);
      request.rows.forEach((row, i) => {
        const vector = shard?.read(row);
        if (vector !== undefined) matrix.set(vector, i * vector.length);
      });
      return matrix;
    }
    case "search": {
      const { queries, search, exchange } = request;
      return shard
        .search(queries, { ...search, exchange: exchange && new ThresholdExchange(exchange, request.shard, search.k) })
        .map(({ totalCount, rows, scores }) => ({ totalCount, rows, ids: Array.from(rows, (row) => ids[row]), scores }));
    }
    case "score":
      return scoreRows(shard, request.query, request.rows, request.similarity);
    case "save":
      if (request.isFirst) image = shard.save()[Symbol.iterator]();
      return image?.next().value ?? undefined;
    case "endSave":
      shard.endSave(request.isKept);
      return undefined;
    case "load":
      if (loader === undefined) {
        loader = shard.load();
        loader.next();
      }
      return loader.next(request.piece).done;
    case "rows": {
      const rows = new Uint32Array(shard.size);
      for (let row = 0, i = 0; i < rows.length; row++) if (shard.has(row)) rows[i++] = row;
      return rows;
    }
    case "name":
      request.rows.forEach((row, i) => {
        ids[row] = request.ids[i]!;
      });
      return undefined;
    case "usage":
      return { memoryBytes: shard.memoryBytes, fileBytes: shard.fileBytes };
  }
}

/** Requests are answered strictly one after the other. Only opening the shard is asynchronous. */
let last: Promise<void> = Promise.resolve();

function serve(post: (reply: ShardReply) => void): (message: { number: number; request: ShardRequest }) => void {
  return ({ number, request }) => {
    last = last.then(async () => {
      try {
        post({ number, value: await handle(request) });
      } catch (error) {
        post({ number, error: describeError(error) });
      }
      coding?.asked(request.type === "search");
    });
  };
}

const port = nodeModule("node:worker_threads")?.parentPort;
if (port) {
  port.on(
    "message",
    serve((reply) => port.postMessage(reply)),
  );
} else {
  const answer = serve((reply) => globalThis.postMessage(reply));
  globalThis.addEventListener("message", (event: MessageEvent) => answer(event.data));
  // Tells the owner that the program runs. Otherwise a page could not distinguish a slow worker from a
  // forbidden one.
  globalThis.postMessage({ number: 0 } satisfies ShardReply);
}
