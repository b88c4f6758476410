/**
 * The program of a shard's worker (shard-worker.ts and everything it imports) as one script.
 * scripts/build.mjs writes dist/core/shard-worker-source.js.
 */
export declare const SHARD_WORKER_SOURCE: string;

// Imported under the name of the file that it declares:
// ignore unused exports
