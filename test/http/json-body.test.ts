import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJsonBody } from "../../src/http/body/json-body.ts";
import { parseJsonInSlices } from "../../src/http/body/json-in-slices.ts";
import { LARGE_TEXT_LENGTH, parseLargeJsonBody } from "../../src/http/body/read-json.ts";
import { DEFAULT_HTTP_LIMITS } from "../../src/http/http-limits.ts";
import { turnsDuring } from "../support/event-loop.ts";
import { runs } from "../support/random-runs.ts";

const LIMITS = { jsonDepth: 100, jsonObjectKeys: 1_000, jsonKeyLength: 1_000 };

function faultOf(text: string, maxDepth = 100): { code: string; message: string } {
  try {
    parseJsonBody(text, maxDepth);
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error(`was accepted: ${text}`);
}

/** The result as plain data, or the refusal. */
async function outcomeOf(work: () => unknown): Promise<unknown> {
  try {
    return { value: await work() };
  } catch (error) {
    return { code: (error as { code?: string }).code ?? "INVALID", message: (error as Error).message };
  }
}

const objectWith = (keys: number, key: string): string => `{${Array.from({ length: keys }, (_, i) => `"${key}${i}":${i}`).join(",")}}`;

describe("parseJsonBody", () => {
  const vectors = { queryVector: true, vector: { queryVector: true } } as const;

  it("leaves a list to the schema where that has a vector, and nowhere else", () => {
    const left = '{"queryVector": [1, 1e999], "vector": {"queryVector": [[1], "\\u0000"]}}';
    expect(parseJsonBody(left, 100, vectors)).toMatchObject({ queryVector: [1, Number.POSITIVE_INFINITY] });
    expect(() => parseJsonBody(left, 100)).toThrow("queryVector[1]: the number is too large for a double");
    expect(() => parseJsonBody('{"filter": {"queryVector": [1e999]}}', 100, vectors)).toThrow("filter.queryVector[0]: the number is");
    expect(() => parseJsonBody('{"queryVector": {"a": 1e999}}', 100, vectors)).toThrow("queryVector.a: the number is");
    expect(() => parseJsonBody('{"queryVector": "\\u0000"}', 100, vectors)).toThrow("queryVector: text cannot");
  });
});

describe("parseJsonInSlices", () => {
  const json = fc.jsonValue({ depthSize: "medium" });
  const texts = fc
    .tuple(
      json,
      fc.constantFrom(undefined, 1, "\t"),
      fc.nat(),
      fc.constantFrom(null, "", '"', "{", "}", "[", "]", ",", ",,", ":", "\\", "\n", "1", "x", '"a":'),
    )
    .map(([value, indent, at, insert]) => {
      const text = JSON.stringify(value, null, indent);
      if (insert === null) return text;
      const cut = at % (text.length + 1);
      return text.slice(0, cut) + insert + text.slice(cut + (at % 2));
    });

  it("accepts and refuses the same as the other parser, wherever the text is cut", async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 12 }), async (text, chunkLength) => {
        const expected = await outcomeOf(() => parseJsonBody(text, 100));
        const got = await outcomeOf(() => parseJsonInSlices(text, LIMITS, chunkLength));
        const isSyntax = (outcome: unknown): boolean => /is not valid JSON/.test((outcome as { message?: string }).message ?? "");
        // If there are several faults, either may be reported.
        if (isSyntax(expected) || "code" in (expected as object)) expect(got).toMatchObject({ code: "INVALID" });
        else expect(got).toEqual(expected);
        if (isSyntax(got)) expect(isSyntax(expected)).toBe(true);
      }),
      { numRuns: runs(3_000) },
    );
  });

  it.each([
    ['{"a": [1, {"b": [{"x": {"__proto__": 1}}]}]}', 'a[1].b[0].x: "__proto__" is not allowed as a key'],
    ['{"a": [1, {"__proto__": [1, 2, 3]}]}', 'a[1]: "__proto__" is not allowed as a key'],
    ["[[1, 2, 3, 1e999]]", "[0][3]: the number is too large for a double"],
    [`{"deep": ${"[".repeat(100)}${"]".repeat(100)}}`, /^deep(\[0\])+.*: nested deeper than 100 levels$/],
  ])("says where the fault of %s is, wherever the text is cut", async (text, message) => {
    for (let chunkLength = 1; chunkLength < 30; chunkLength++) {
      await expect(parseJsonInSlices(text, LIMITS, chunkLength)).rejects.toMatchObject({
        code: "INVALID",
        message: typeof message === "string" ? message : expect.stringMatching(message),
      });
    }
  });

  it.each(['{"a": 1{"b": 2}}', '{"a": -[1, 2]}', '{"a": tru[1]}', '{"a": 1.5e{}}', '[1{"b": 2}]', '{"a": ""[0]}', '{"a" [1]}', "{[1]: 2}"])(
    "refuses %s, wherever the text is cut",
    async (text) => {
      for (let chunkLength = 1; chunkLength < 20; chunkLength++) {
        await expect(parseJsonInSlices(text, LIMITS, chunkLength)).rejects.toMatchObject({
          code: "INVALID",
        });
      }
    },
  );

  it("counts the last of several equal keys, and keeps the order of the rest", async () => {
    const text = '{"b": [1, 2], "a": {"x": 1}, "b": {"y": [3]}, "c": 1}';
    for (let chunkLength = 1; chunkLength < 30; chunkLength++) {
      expect(JSON.stringify(await parseJsonInSlices(text, LIMITS, chunkLength))).toBe('{"b":{"y":[3]},"a":{"x":1},"c":1}');
    }
  });

  const longTexts = fc.array(fc.constantFrom("\\", '"', "\\u0041", "a", "ж", "😀", "\ud83d", "\n", "\0", ","), {
    minLength: 1,
    maxLength: 40,
  });

  it("decodes long texts as JSON.parse does, wherever they are cut", async () => {
    const aroundIt = fc.constantFrom(
      ['{"k": 1, "t" : ', ' , "l": 2}'],
      ["[1, ", "]"],
      ["[[ ", " ], 3]"],
      ['{"a": [{"t":', "}]}"],
      ['{"t": "x" ', "}"],
    );
    await fc.assert(
      fc.asyncProperty(longTexts, aroundIt, fc.integer({ min: 1, max: 9 }), async (parts, [before, behind], chunkLength) => {
        const text = before + JSON.stringify(parts.join("")) + behind;
        const expected = await outcomeOf(() => parseJsonBody(text, 100));
        const got = await outcomeOf(() => parseJsonInSlices(text, LIMITS, chunkLength));
        const { message } = expected as { message?: string };
        if (message === undefined) expect(got).toEqual(expected);
        // If there are several faults, either may be reported, of the same place.
        else expect(got).toMatchObject({ code: "INVALID", message: expect.stringContaining(message.slice(0, message.indexOf(":"))) });
      }),
      { numRuns: runs(2_000) },
    );
  });

  it("refuses a key, and a body, that is one long text", async () => {
    const long = `"${"k".repeat(300_000)}"`;
    await expect(parseLargeJsonBody(`{"a": {${long}: 1}}`, DEFAULT_HTTP_LIMITS)).rejects.toMatchObject({
      code: "INVALID",
      message: "The body has a key of 300,000 characters; at most 262,144 are allowed.",
    });
    await expect(parseLargeJsonBody(` ${long}`, DEFAULT_HTTP_LIMITS)).rejects.toMatchObject({
      code: "INVALID",
      message: "The body is a text; expected a JSON object.",
    });
  });

  it.each([
    ["objects", `[${'{"k":1},'.repeat(200_000)}{}]`],
    ["different keys", `{"o":[${["a", "b", "c"].map((key) => objectWith(50_000, key)).join(",")}]}`],
    ["numbers", `{"v":[${"0.123456,".repeat(200_000)}1]}`],
    ["one text", `{"v":[{"text": "${"x".repeat(2_000_000)}"}]}`],
    ["one text of quotes", `{"v":"${'\\"'.repeat(1_000_000)}"}`],
    ["one text of backslashes", `["${"\\\\".repeat(1_000_000)}", "${"\\u0436".repeat(300_000)}"]`],
  ])("lets others in between: %s", async (_, text) => {
    let value: unknown;
    const turns = await turnsDuring(async () => {
      value = await parseLargeJsonBody(text, DEFAULT_HTTP_LIMITS);
    });
    expect(value).toEqual(JSON.parse(text));
    // Scanned in slices of half a million characters, parsed in slices of an eighth of a million.
    expect(turns).toBeGreaterThan(Math.floor(text.length / 131_072));
  });
});

describe("parseJsonBody", () => {
  it("accepts what JSON.parse accepts, including duplicate keys (the last one counts)", () => {
    expect(parseJsonBody('{"a": 1, "a": [true, null, "é\\u00e9\\ud83d\\ude00"]}', 100)).toEqual({ a: [true, null, "éé😀"] });
  });

  it("accepts any value that JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: "medium" }), (value) => {
        const text = JSON.stringify(value);
        const hasRefused = /__proto__|\\u0000|\\ud[89a-f]/i.test(text);
        fc.pre(!hasRefused);
        expect(parseJsonBody(text, 100)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each(["", "{", '{"a" 1}', '{"a": 1,}', "{'a': 1}", "[1, 2", "[1,\n 2,\n nan]", "[1] x", '{"a": "b', '["\\x"]', "[01]", "[NaN]"])(
    "refuses %j and says what V8 says of it",
    (text) => {
      expect(() => JSON.parse(text)).toThrow(SyntaxError);
      const { code, message } = faultOf(text);
      expect(code).toBe("INVALID");
      // The position, or the part of the text that contains it.
      expect(message).toMatch(/^The body is not valid JSON: .*(?:at position \d+|"\.{0,3}.*"\.{0,3} is not valid JSON|end of JSON input)/s);
    },
  );

  it("accepts 100 levels and refuses 101", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(() => parseJsonBody(nested(99), 100)).not.toThrow();
    expect(() => parseJsonBody(nested(100), 100)).not.toThrow();
    expect(faultOf(nested(101))).toMatchObject({ code: "INVALID", message: expect.stringContaining("nested deeper than 100 levels") });
    expect(faultOf(`{"a":${nested(1_000)}}`).message).toContain("nested deeper than 100 levels");
  });

  it.each([
    ['{"a": [{"__proto__": {"x": 1}}]}', 'a[0]: "__proto__" is not allowed as a key'],
    ['{"__proto__": null}', 'body: "__proto__" is not allowed as a key'],
    ['{"a": {"b": 1e999}}', "a.b: the number is too large for a double"],
    ['{"a": "x\\u0000y"}', "a: text cannot contain the character NUL (\\u0000)"],
    ['{"a\\u0000": 1}', "a: text cannot contain the character NUL (\\u0000)"],
    ['{"a": ["\\ud800"]}', "a[0]: text contains half of a surrogate pair (\\ud800 to \\udfff), which is not a character"],
  ])("refuses %s and names the place", (text, message) => {
    expect(faultOf(text).message.replace("a\u0000", "a")).toBe(message);
  });

  it("changes no prototype, whatever the keys", () => {
    parseJsonBody('{"constructor": {"prototype": {"polluted": true}}}', 100);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe("parseLargeJsonBody", () => {
  const limits = {
    jsonDepth: 100,
    jsonKeys: 1_000,
    jsonObjectKeys: 500,
    jsonKeyLength: 1_000,
    jsonValues: 3_000_000,
    jsonContainers: 5_000,
  };
  const refused = (text: string, other: Partial<typeof limits> = {}) =>
    parseLargeJsonBody(text, { ...limits, ...other }).then(
      () => "was accepted",
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    );

  it("refuses ten million brackets without overflowing the stack", async () => {
    expect(await refused("[".repeat(10_000_000))).toBe("INVALID body: nested deeper than 100 levels");
  });

  it("counts outside of strings only", async () => {
    const text = JSON.stringify({ a: '[{"\\,:'.repeat(300_000), b: ["\\", '"[[,,::', 1, {}] });
    expect(text.length).toBeGreaterThan(LARGE_TEXT_LENGTH);
    const exact = { jsonDepth: 3, jsonKeys: 2, jsonObjectKeys: 2, jsonKeyLength: 100, jsonValues: 7, jsonContainers: 3 };
    expect(await parseLargeJsonBody(text, exact)).toEqual(JSON.parse(text));
    expect(await refused(text, { ...exact, jsonDepth: 2 })).toBe("INVALID body: nested deeper than 2 levels");
    expect(await refused(text, { ...exact, jsonKeys: 1 })).toContain("body: it holds 2 keys; at most 1 are accepted");
    expect(await refused(text, { ...exact, jsonValues: 6 })).toContain("body: it holds 7 values; at most 6 are accepted");
    expect(await refused(text, { ...exact, jsonContainers: 2 })).toContain("body: it holds 3 objects and lists; at most 2 are accepted");
  });

  it("counts the keys of each object that is filled part by part", async () => {
    const object = (keys: number): string => `{${Array.from({ length: keys }, (_, i) => `"${i}":"${"x".repeat(1_000)}"`).join(",")}}`;
    const other = { jsonKeys: 10_000 };
    expect(await refused(`[${object(500)},{"a":${object(500)}}]`, other)).toBe("was accepted");
    expect(await refused(`[${object(500)},{"a":${object(501)}}]`, other)).toContain("INVALID [1].a: the object has more than 500 keys");
  });

  it("refuses what parseJsonBody refuses", async () => {
    expect(await refused(`[${"1,".repeat(1_000_000)}]`)).toContain("INVALID The body is not valid JSON");
    const long = `"${"x".repeat(LARGE_TEXT_LENGTH)}"`;
    expect(await refused(`{"a": ${long}, "__proto__": 1}`)).toBe('INVALID body: "__proto__" is not allowed as a key');
    expect(await refused(`[${long}, "\\u0000"]`)).toContain("INVALID [1]: text cannot contain the character NUL");
  });

  it("lets others run meanwhile", async () => {
    let turns = 0;
    const ticking = setInterval(() => turns++, 0);
    await parseLargeJsonBody(`[${"1,".repeat(2_500_000)}0]`, limits);
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(1);
  });

  it("is not needed for smaller texts: they cannot reach its limits", () => {
    // The shortest member and the shortest list in a text.
    expect(LARGE_TEXT_LENGTH / '"":0,'.length).toBeLessThan(DEFAULT_HTTP_LIMITS.jsonKeys);
    // Keys of one character, each a different one.
    expect(LARGE_TEXT_LENGTH / '"k":0,'.length).toBeLessThan(DEFAULT_HTTP_LIMITS.jsonObjectKeys);
    expect(LARGE_TEXT_LENGTH / "[],".length).toBeLessThan(DEFAULT_HTTP_LIMITS.jsonContainers);
    expect(LARGE_TEXT_LENGTH / "0,".length).toBeLessThan(DEFAULT_HTTP_LIMITS.jsonValues);
  });
});
