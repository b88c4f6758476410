/** The part of `fetch` that is used. Taken from a method, so that functions which want a RequestInit fit: that is what they get. */
export type FetchLike = {
  fetch(
    url: string,
    init: object,
  ): Promise<{
    readonly ok: boolean;
    readonly status: number;
    readonly headers: { get(name: string): string | null };
    readonly body: {
      getReader(): {
        read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
        cancel(): Promise<void>;
      };
    } | null;
    json(): Promise<unknown>;
  }>;
}["fetch"];
