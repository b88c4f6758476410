/** Where a replica is kept between two starts: the frames that it was made of, group by group. */

export interface ReplicaStore {
  /** Its name, if all tabs of the page's origin have it: then one of them holds the replica, and the others ask that one. */
  readonly sharedAs?: string | undefined;
  /** What was kept under the name, piece by piece, in order. Its end may be missing: a group whose position is not there is not used. */
  read(name: string): AsyncIterable<Uint8Array>;
  /** Adds pieces; all or none of them. */
  append(name: string, pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<void>;
  /** In place of what was kept; that stays until the last piece is there. */
  replace(name: string, pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void>;
  delete(name: string): Promise<void>;
}
