/** The memory budget on its own: what is charged, refused, shared and given back. */
import { describe, expect, it } from "vitest";
import { FREE_BYTES, MEMORY_PER_BYTE, MemoryBudget } from "../../src/budget/memory-budget.ts";
import { memoryLimits } from "../../src/budget/process-limits.ts";
import { Reading } from "../../src/records/engine/reading.ts";

const MIB = 2 ** 20;
const refusal = (run: () => void): string | undefined => {
  try {
    run();
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("the budget of memory", () => {
  it("refuses an answer beyond its own limit, and charges nothing of what it refuses", () => {
    const budget = new MemoryBudget({ answerBytes: MIB, totalBytes: 100 * MIB });
    const answer = budget.open("a");
    answer.charge(MIB - 1);
    expect(refusal(() => answer.charge(2))).toBe("TOO_LARGE");
    answer.charge(1);
    expect([answer.bytes, answer.remaining]).toEqual([MIB, 0]);
    expect(budget.heldBytes).toBe((MIB - FREE_BYTES) * MEMORY_PER_BYTE);
    answer.close();
    answer.close();
    expect(budget.heldBytes).toBe(0);
  });

  it("never refuses the first bytes of an answer, whatever others hold", () => {
    const budget = new MemoryBudget({ answerBytes: 10 * MIB, totalBytes: 8 * MIB });
    const greedy = budget.open("a");
    greedy.charge(FREE_BYTES + MIB);
    expect(refusal(() => greedy.charge(1))).toBe("TOO_LARGE");
    const modest = [budget.open("a"), budget.open("b")];
    for (const answer of modest) answer.charge(FREE_BYTES);
    expect(budget.heldBytes).toBe(MIB * MEMORY_PER_BYTE);
  });

  it("gives a lone caller half, each of n callers the (n + 1)th part, and always leaves a part for the next", () => {
    const total = 60 * MIB;
    const budget = new MemoryBudget({ answerBytes: 1_000 * MIB, totalBytes: total });
    expect(budget.available("a")).toBe(total / 2);
    const a = budget.open("a");
    a.hold(total / 2);
    expect(refusal(() => budget.open("a").hold(1))).toBe("OVERLOADED");
    // It cannot have more than that at any time.
    expect(refusal(() => a.hold(1))).toBe("TOO_LARGE");
    const b = budget.open("b");
    b.hold(total / 3);
    expect(refusal(() => b.hold(1))).toBe("OVERLOADED");
    // Ten MiB are left, less than a quarter.
    expect(budget.available("c")).toBe(total / 6);
    a.close();
    expect(budget.available("c")).toBe(total / 3);
    b.close();
    expect(budget.available("b")).toBe(total / 2);
  });

  it("charges what is already committed without a refusal, and nothing for a request that is over", () => {
    const budget = new MemoryBudget({ answerBytes: MIB, totalBytes: MIB });
    const answer = budget.open("a");
    answer.chargeCommitted(MIB);
    expect(budget.heldBytes).toBe(MIB * MEMORY_PER_BYTE);
    answer.close();
    answer.chargeCommitted(MIB);
    expect(budget.heldBytes).toBe(0);
  });

  it("weighs lists and objects by the memory they take as values", () => {
    const budget = new MemoryBudget({ answerBytes: 64 * MIB, totalBytes: 512 * MIB });
    const held = (text: string): number => {
      const answer = budget.open("a");
      new Reading(answer).received(Buffer.from(text));
      const bytes = budget.heldBytes;
      answer.close();
      return bytes;
    };
    const plain = held("x".repeat(3 * MIB));
    // At least what V8 uses for them.
    expect(held("{},".repeat(MIB)) - plain).toBeGreaterThan(MIB * 56);
  });

  it("divides the memory: no part of it, nor of the heap, is given twice", () => {
    for (const memory of [512 * MIB, 1_024 * MIB, 4_096 * MIB, 65_536 * MIB]) {
      for (const heap of [256 * MIB, 2_048 * MIB, 4_096 * MIB]) {
        const { answers, bodyBytes, databaseBytes, indexBytes } = memoryLimits(memory, heap);
        expect(answers.totalBytes + 4 * bodyBytes + databaseBytes + Math.max(0, indexBytes - 64 * MIB)).toBeLessThanOrEqual(memory);
        expect(answers.totalBytes + 4 * bodyBytes + databaseBytes).toBeLessThanOrEqual((7 / 8) * memory);
        expect(answers.totalBytes + 4 * bodyBytes).toBeLessThanOrEqual((3 / 4) * heap);
        // A lone caller's largest answer fits in its half.
        expect(answers.answerBytes * MEMORY_PER_BYTE).toBeLessThanOrEqual(answers.totalBytes / 2);
      }
    }
  });
});
