/** The index: in a worker, kept in IndexedDB, so that a second visit builds nothing again. */
import { Columns, IndexedDbStore, LodestoneError, ParallelVectorIndex } from "lodestone";

const CITIES = [
  ["Berlin", 52.52, 13.41, "Germany"],
  ["Prague", 50.08, 14.44, "Czechia"],
  ["Warsaw", 52.23, 21.01, "Poland"],
  ["Vienna", 48.21, 16.37, "Austria"],
  ["Paris", 48.86, 2.35, "France"],
  ["Lima", -12.05, -77.04, "Peru"],
  ["Nairobi", -1.29, 36.82, "Kenya"],
  ["Suva", -18.14, 178.44, "Fiji"],
];

const store = new IndexedDbStore("example-react");
const columns = () => new Columns({ country: "string" });

export async function openIndex() {
  try {
    return await store.load("cities", ParallelVectorIndex, { shards: 1, columns: columns() });
  } catch (error) {
    if (!(error instanceof LodestoneError) || error.code !== "NOT_FOUND") throw error;
  }
  const index = await ParallelVectorIndex.create({ dimension: 3, shards: 1, columns: columns() });
  for (const [city, latitude, longitude, country] of CITIES) {
    const [phi, lambda] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180];
    await index.upsert(city, [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)], { country });
  }
  await store.save("cities", index);
  return index;
}
