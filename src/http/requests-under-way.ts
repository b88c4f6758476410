/**
 * The requests that are not answered to the end. The server ends some of them itself: all at the deadline of a
 * shut-down, and those whose key is revoked.
 *
 * To end one is to tell its work (the signal `gone`): what has not begun does not begin, reading stops, and the request
 * is answered with the reason. A write that has begun is finished and answered, since whether it was carried out must be
 * known. An answer of which a part has been sent can only be broken off.
 */
import type { ServerResponse } from "node:http";
import type { ClientConnection } from "./connections/client-connection.ts";
import type { Caller } from "./keys/access-keys.ts";

export class RequestUnderWay {
  readonly connection: ClientConnection;
  readonly response: ServerResponse;
  /** Once its key was checked. */
  caller: Caller | undefined;
  /** Rejects when the request is answered in place of its handler. */
  readonly cut: Promise<never>;
  #reject: (reason: Error) => void = () => {};

  constructor(connection: ClientConnection, response: ServerResponse) {
    this.connection = connection;
    this.response = response;
    this.cut = new Promise((_resolve, reject) => {
      this.#reject = reject;
    });
  }

  end(reason: Error): void {
    this.connection.endRequests(reason);
    if (this.response.headersSent) this.response.destroy(reason);
    // Its handler runs only when all of its body is there.
    else if (!this.response.req.complete) this.#reject(reason);
  }

  /** Answers it with the reason although its work goes on. */
  answer(reason: Error): void {
    if (this.response.headersSent) this.response.destroy(reason);
    else this.#reject(reason);
  }
}

export class RequestsUnderWay {
  readonly #requests = new Set<RequestUnderWay>();

  begin(connection: ClientConnection, response: ServerResponse): RequestUnderWay {
    const request = new RequestUnderWay(connection, response);
    this.#requests.add(request);
    response.once("close", () => this.#requests.delete(request));
    return request;
  }

  /** A copy, so that requests may end meanwhile. */
  list(): RequestUnderWay[] {
    return [...this.#requests];
  }
}
