/** Limits of the HTTP edge. Each is listed in docs/limits.md and tested at n - 1, n and n + 1 (or at the time it names). */
export interface HttpLimits {
  /** Bytes of one request body; more is 413. */
  readonly bodyBytes: number;
  /** Levels of nested arrays and objects in a body; more is 400. */
  readonly jsonDepth: number;
  /** Keys of all objects in a body; more is 400. */
  readonly jsonKeys: number;
  /** Keys of one object in a body; more is 400. */
  readonly jsonObjectKeys: number;
  /** UTF-16 code units of a key in a body; more is 400. */
  readonly jsonKeyLength: number;
  /** Values in all objects and lists of a body; more is 400. */
  readonly jsonValues: number;
  /** Objects and lists in a body; more is 400. */
  readonly jsonContainers: number;
  /** Requests worked on at once; more is 429. */
  readonly concurrentRequests: number;
  /** Bytes of request bodies held at once by all requests; more is 429. */
  readonly concurrentBodyBytes: number;
  /**
   * Open connections; a client alone gets three quarters of them. One more takes the place of one that waits for a
   * request.
   */
  readonly connections: number;
  /** A connection must send a request's headers within this time. */
  readonly headersTimeoutMs: number;
  /** A body must arrive whole within this time; later is 408. */
  readonly bodyTimeoutMs: number;
  /** A body must not pause for longer; longer is 408. */
  readonly bodyIdleTimeoutMs: number;
  /** A client that reads nothing of a large answer for this long is disconnected. */
  readonly answerIdleTimeoutMs: number;
  /**
   * At a shut-down, connections that are kept alive get this long to send a request, whose answer says that the
   * connection ends. A client that sends one to a connection that is being closed cannot know what became of it.
   */
  readonly shutdownIdleMs: number;
  /**
   * At a shut-down, requests in flight get this long to finish. With the next limit, snapshots (3 s) and the database
   * (1 s), all of it is done within 10 s.
   */
  readonly shutdownTimeoutMs: number;
  /**
   * Then the others get this long to end and say so, and as long again to be sent an answer that does not know their
   * outcome.
   */
  readonly shutdownAnswerMs: number;
}

/** Entries of an answer that lists the newest of something, without pages. */
export const MAX_LISTED = 1_000;

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  bodyBytes: 20 * 1024 * 1024,
  jsonDepth: 100,
  jsonKeys: 250_000,
  // Listing the keys of an object with more takes more than a slice of time, and is done in several places.
  jsonObjectKeys: 50_000,
  // Texts are decoded in pieces, keys in one go. Bodies that are shorter than this are not searched for long keys.
  jsonKeyLength: 1 << 18,
  jsonValues: 4_000_000,
  jsonContainers: 1_000_000,
  concurrentRequests: 256,
  concurrentBodyBytes: 256 * 1024 * 1024,
  connections: 4_096,
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 120_000,
  bodyIdleTimeoutMs: 15_000,
  answerIdleTimeoutMs: 30_000,
  shutdownIdleMs: 250,
  shutdownTimeoutMs: 5_000,
  shutdownAnswerMs: 500,
};
