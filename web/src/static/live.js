// Puts live counts into the elements that have data-queue and data-count. Without this
// file the page is complete, and shows the counts of when it was loaded.
"use strict";
{
  const address = document.body.dataset.live;
  const state = document.getElementById("live");
  let events = null;

  const say = (text) => {
    if (state) state.textContent = text;
  };
  const show = (counts) => {
    for (const place of document.querySelectorAll("[data-queue][data-count]")) {
      const queue = counts[place.dataset.queue];
      const text = queue && queue[place.dataset.count];
      if (text !== undefined && place.textContent !== text) place.textContent = text;
    }
  };
  const open = () => {
    if (events || document.hidden) return;
    events = new EventSource(address);
    events.onmessage = (event) => {
      show(JSON.parse(event.data));
      say("The counts are live.");
    };
    events.onerror = () => say("The counts are not live: the connection is lost.");
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
