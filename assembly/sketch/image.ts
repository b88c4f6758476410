/**
 * The image of a shard whose float32 are outside: what it knows of its rows, so that loading reads no float32 and codes
 * nothing. It holds the basis, and of each segment the segment itself, its centre and its sketches. The host copies them;
 * addresses in them are made anew here.
 *
 *   parts of a segment, u32[6]: | address, bytes of the segment | of its centre | of its sketches |; 0 bytes: it has none
 *
 * Rows may change between two segments: each is saved as it is at its turn, when it is closed, and whoever loads the image
 * brings those rows up to date. Sketches of another basis than the one that was saved are left out.
 */
import { adoptCentre, emptyCentre } from "../codes/centres";
import {
  centreOf,
  codeDimension,
  countAdopted,
  segmentPtr,
  segmentRows,
  segmentSize,
  setCentre,
  setFloatsPtr,
  sketchStatePtr,
  staleCountPtr,
  stalePtr,
} from "../rows/rows";
import { basisNumber, sketchDimension, skewness } from "./basis";
import { adoptInstalled, basisPtr, basisSize, basisSizeOf, largestDimension, reserveInstalled } from "./learn";
import { closeIfOpen } from "./outside";
import { noteAdopted } from "./schedule";
import { hasSketches, keepSketches, reserveSketches, sketchBlockBytes } from "./sketches";

const parts = memory.data(24, 16);

function setPart(i: i32, ptr: usize, bytes: u64): void {
  store<u32>(parts + ((<usize>i) << 3), <u32>ptr);
  store<u32>(parts + ((<usize>i) << 3), <u32>bytes, 4);
}

/** Number of the basis that was saved. */
let savedNumber: u32 = 0;

/** Closes segment `s` and says where its parts are. @returns their address. */
export function saveSegment(s: u32): usize {
  const segment = segmentPtr(s);
  closeIfOpen(segment);
  setPart(0, segment, segmentSize());
  setPart(1, centreOf(segment), centreOf(segment) === 0 ? 0 : (<u64>codeDimension) << 2);
  const sketches = load<u32>(sketchStatePtr(segment));
  // The block may have room for more dimensions than the basis in use; its codes lie close together.
  setPart(2, sketches, hasSketches(segment) && basisNumber === savedNumber ? sketchBlockBytes(sketchDimension) : 0);
  return parts;
}

/**
 * Call it when the host has written a segment into place, segmentSize() bytes at segmentPtr(s): prepares the places of
 * its centre and sketches, as for saveSegment, with 0 bytes for what it does not have. @returns 0 at the memory limit.
 */
export function loadSegment(s: u32, hasCentre: bool, isSketched: bool): usize {
  const segment = segmentPtr(s);
  setCentre(segment, 0);
  setFloatsPtr(segment, 0);
  memory.fill(stalePtr(segment), 0, <usize>segmentRows >> 3);
  store<u32>(staleCountPtr(segment), 0);
  const state = sketchStatePtr(segment);
  store<u32>(state, 0);
  store<u32>(state, 0, 4);
  store<u32>(state, 0, 8);
  countAdopted(segment);
  setPart(0, segment, segmentSize());
  setPart(1, 0, 0);
  setPart(2, 0, 0);
  if (hasCentre) {
    if (emptyCentre() === 0) return 0;
    setPart(1, emptyCentre(), (<u64>codeDimension) << 2);
  }
  if (isSketched) {
    if (sketchDimension === 0 || !reserveSketches(segment)) return 0;
    setPart(2, load<u32>(state), sketchBlockBytes(sketchDimension));
  }
  return parts;
}

/** Call it when the host has written these parts. @returns false at the memory limit. */
export function adoptSegment(s: u32): bool {
  const segment = segmentPtr(s);
  if (load<u32>(parts, 12) !== 0 && !adoptCentre(segment)) return false;
  if (load<u32>(parts, 20) !== 0) keepSketches(segment);
  noteAdopted();
  return true;
}

// The basis, before the segments: its dimensions, 0 for none; ε; and its bytes and their address.

/** Call it first. */
export function beginImage(): i32 {
  savedNumber = basisNumber;
  return sketchDimension;
}

export function savedSkewness(): f64 {
  return skewness;
}

export function savedBasis(): usize {
  return basisPtr();
}

export function savedBasisBytes(): f64 {
  return <f64>basisSize();
}

/** Makes room for a basis. @returns where the host writes it; 0 at the memory limit, or for dimensions that none has. */
export function loadBasis(dimensions: i32): usize {
  if (dimensions < 32 || dimensions > largestDimension() || (dimensions & 31) !== 0) return 0;
  return reserveInstalled(dimensions);
}

/** Size of a basis of this many dimensions. */
export function loadedBasisBytes(dimensions: i32): f64 {
  return <f64>basisSizeOf(dimensions);
}

export function adoptBasis(dimensions: i32, epsilon: f64): void {
  adoptInstalled(dimensions, epsilon);
}
