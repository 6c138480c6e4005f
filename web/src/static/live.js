// Puts live counts into the elements that have data-queue and data-count. Without this
// file the page is complete, and shows the counts of when it was loaded.
"use strict";
{
  const address = document.body.dataset.live;
  const state = document.getElementById("live");
  const RETRY_MS = 3000;
  let events = null;

  const say = (text) => {
    // A screen reader reads the text again each time that it is set.
    if (state && state.textContent !== text) state.textContent = text;
  };
  const places = () => [...document.querySelectorAll("[data-queue][data-count]")];
  const show = (counts) => {
    for (const place of places()) {
      const queue = counts[place.dataset.queue];
      const text = queue && queue[place.dataset.count];
      if (text !== undefined && place.textContent !== text) place.textContent = text;
    }
  };
  // The counts of a queue with an error, and those of a queue that is not in the message,
  // are old ones.
  const tell = (counts) => {
    const queues = Object.values(counts);
    const failed = queues.filter((queue) => queue.error !== undefined);
    if (failed.length > 0) {
      const which = failed.length === queues.length ? "The counts" : "Some counts";
      return `${which} cannot be read: ${failed[0].error}`;
    }
    const isOld = places().some((place) => !counts[place.dataset.queue]);
    return isOld ? "Not all counts are live." : "The counts are live.";
  };
  const open = () => {
    if (events || document.hidden) return;
    events = new EventSource(address);
    events.onmessage = (event) => {
      const counts = JSON.parse(event.data);
      show(counts);
      say(tell(counts));
    };
    events.onerror = () => {
      say("The counts are not live.");
      // The browser tries again after a lost connection, but not after an error, such as that
      // of a proxy whose server restarts.
      if (events.readyState !== EventSource.CLOSED) return;
      close();
      setTimeout(open, RETRY_MS);
    };
  };
  const close = () => {
    if (events) events.close();
    events = null;
  };

  if (address) {
    // A hidden page needs no connection; a browser has only six for one server.
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
    addEventListener("pageshow", open);
    open();
  }
}
