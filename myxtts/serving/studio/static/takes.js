// What was recorded and is neither kept nor discarded yet: on the server as soon as it is recorded.
import { blob, get, onLeave, remove, t, upload } from "./core.js";

// What a reload would lose, while it is not on the server: the browser asks before it does.
const unsaved = new Set();
export const guard = (what, isUnsaved) => { if (isUnsaved) unsaved.add(what); else unsaved.delete(what); };
window.addEventListener("beforeunload", event => { if (unsaved.size) event.preventDefault(); });

// The takes for a corpus, or for a voice that is to be cloned. One that is not stored has a sound alone.
export function takeStore(corpus, line) {
  const query = corpus ? `corpus=${encodeURIComponent(corpus)}` : "", failed = new Set();
  let left = false;
  // Nobody can keep it any more where the page shows something else.
  const fail = take => { if (left) guard(take, false); else failed.add(take); };
  onLeave(() => { left = true; for (const take of failed) guard(take, false); });
  const send = async take => {
    const made = await upload(`takes?${query}&text=${encodeURIComponent(take.text)}`, take.sound, () => {});
    take.id = made.id;
    guard(take, false);
  };
  const store = take => {
    if (take.id) return null;
    guard(take, true);
    take.storing ??= send(take).finally(() => { take.storing = null; });
    return take.storing;
  };
  return {
    store,
    list: async () => (await get(`takes?${query}`)).takes,
    // Tells what goes wrong: the recording is still in the page, and can be kept.
    keepSafe: async take => { try { await store(take); } catch (error) { fail(take); line.set(t("notStored", { why: error.message }), "error"); } },
    drop: async take => { guard(take, false); await take.storing?.catch(() => {}); if (take.id) await remove(`takes/${take.id}`); },
    sound: async take => take.sound ??= await blob(`takes/${take.id}/audio`),
  };
}
