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
  /** Its place in the list. */
  place = 0;
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

/**
 * A list, and the last one takes the place of one that has ended. Not a Set: V8 makes a Set's table anew after some
 * deletions, and a table that reached the old generation kept all that had been in it, with their requests and answers,
 * until the next full garbage collection. Then 5 kB of each search outlived it, and collecting took twice as long.
 */
export class RequestsUnderWay {
  readonly #requests: RequestUnderWay[] = [];

  begin(connection: ClientConnection, response: ServerResponse): RequestUnderWay {
    const request = new RequestUnderWay(connection, response);
    request.place = this.#requests.push(request) - 1;
    response.once("close", () => this.#end(request));
    return request;
  }

  /** A copy, so that requests may end meanwhile. */
  list(): RequestUnderWay[] {
    return [...this.#requests];
  }

  #end(request: RequestUnderWay): void {
    const last = this.#requests.pop();
    if (last === undefined || last === request) return;
    this.#requests[request.place] = last;
    last.place = request.place;
  }
}
