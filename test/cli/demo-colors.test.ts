import { describe, expect, it } from "vitest";
import { demoColors, labOf } from "../../src/cli/demo-colors.ts";

describe("the demo colours", () => {
  it("are the 148 named colours of CSS, each with its own name", () => {
    const colors = demoColors();
    expect(colors).toHaveLength(148);
    expect(new Set(colors.map(({ id }) => id)).size).toBe(148);
    for (const { name, hex } of colors) {
      expect(name).toMatch(/^[a-z]+$/);
      expect(hex).toMatch(/^#[0-9a-f]{6}$/);
    }
    expect(colors.map(({ name }) => name)).toEqual(colors.map(({ name }) => name).toSorted());
  });

  it("have 9 pairs of names for one colour, the greys among them", () => {
    const namesByHex = groupByHex();
    const doubles = [...namesByHex.values()].filter((group) => group.length > 1).map((group) => group.map(({ name }) => name).join("="));
    expect(doubles.toSorted()).toEqual([
      "aqua=cyan",
      "darkgray=darkgrey",
      "darkslategray=darkslategrey",
      "dimgray=dimgrey",
      "fuchsia=magenta",
      "gray=grey",
      "lightgray=lightgrey",
      "lightslategray=lightslategrey",
      "slategray=slategrey",
    ]);
  });

  // Published: Bruce Lindbloom's CIE colour calculator, sRGB under D65.
  it.each([
    ["black", [0, 0, 0]],
    ["white", [100, 0.005, -0.01]],
    ["red", [53.241, 80.092, 67.203]],
    ["lime", [87.735, -86.183, 83.179]],
    ["blue", [32.297, 79.188, -107.86]],
    ["yellow", [97.139, -21.554, 94.478]],
    ["cyan", [91.113, -48.088, -14.131]],
    ["magenta", [60.324, 98.234, -60.825]],
    ["gray", [53.585, 0.003, -0.006]],
  ])("%s has the published Lab value", (name, published) => {
    const { lab } = demoColors().find((color) => color.name === name) as ReturnType<typeof demoColors>[number];
    for (const [i, value] of published.entries()) expect(lab[i]).toBeCloseTo(value, 1);
  });

  it("the lightness of grey follows the published curve, the linear part included", () => {
    // L* = 903.3 Y for very dark colours: rgb(1, 1, 1) has Y = 1/255/12.92.
    expect(labOf([1, 1, 1])[0]).toBeCloseTo((24389 / 27) * (1 / 255 / 12.92), 3);
  });

  it.each([
    ["crimson", "red"],
    ["chocolate", "orange"],
    ["gold", "yellow"],
    ["forestgreen", "green"],
    ["teal", "cyan"],
    ["navy", "blue"],
    ["rebeccapurple", "purple"],
    ["hotpink", "pink"],
    ["pink", "pink"],
    ["silver", "gray"],
  ])("%s belongs to the family %s", (name, family) => {
    expect(demoColors().find((color) => color.name === name)?.family).toBe(family);
  });
});

function groupByHex(): Map<string, ReturnType<typeof demoColors>> {
  const groups = new Map<string, ReturnType<typeof demoColors>>();
  for (const color of demoColors()) groups.set(color.hex, [...(groups.get(color.hex) ?? []), color]);
  return groups;
}
