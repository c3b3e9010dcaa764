import type { ContentRecord, ContentStore } from "./store";

/** Content in memory: gone with the process. */
export function memoryContent(): ContentStore {
  const records = new Map<string, ContentRecord>();
  return {
    clear: () => records.clear(),
    create: (record) => {
      records.set(record.id, record);
    },
    read: (id) => records.get(id),
    update: (id, change) => {
      const record = records.get(id);
      if (!record) return undefined;
      const updated = { ...record, ...change, updated_at: new Date().toISOString() };
      records.set(id, updated);
      return updated;
    },
    delete: (id) => records.delete(id),
  };
}
