/** A list that keeps none of its members alive: one that nobody else has any more is no longer in it. */
export class WeakList<Member extends object> implements Iterable<Member> {
  #members: WeakRef<Member>[] = [];

  add(member: Member): void {
    this.#members.push(new WeakRef(member));
  }

  remove(member: Member): void {
    this.#members = this.#members.filter((own) => own.deref() !== member);
  }

  *[Symbol.iterator](): IterableIterator<Member> {
    let areAllThere = true;
    for (const own of this.#members) {
      const member = own.deref();
      if (member === undefined) areAllThere = false;
      else yield member;
    }
    if (!areAllThere) this.#members = this.#members.filter((own) => own.deref() !== undefined);
  }
}
