"use strict";
(() => {
  const form = document.getElementById("filters");
  const { verdict, paper, group, q } = form.elements;
  const choices = { verdict, paper, group, q };
  const claims = [...document.querySelectorAll(".claim")].map((row) => ({
    row,
    details: row.querySelector("details"),
    text: [...row.querySelectorAll("summary, .words")].map((part) => part.textContent).join(" ").toLowerCase(),
  }));
  const unfold = document.getElementById("unfold");

  function filter() {
    const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of claims) {
      const fits = [verdict, paper, group].every((one) => !one.value || row.dataset[one.name] === one.value);
      row.hidden = !(fits && words.every((word) => text.includes(word)));
      shown += !row.hidden;
    }
    document.getElementById("shown").textContent = `${shown} of ${claims.length} shown`;
    document.getElementById("nothing").hidden = shown > 0;
  }

  // The filters stand in the address as #verdict=differs&paper=MV24, so that a view can be sent; #B7 is a row.
  function remember() {
    const state = new URLSearchParams(Object.entries(choices).map(([name, one]) => [name, one.value]).filter(([, value]) => value));
    history.replaceState(null, "", `${location.href.split("#")[0]}#${state.size ? state : "claims"}`);
  }

  function choose(state) {
    for (const [name, one] of Object.entries(choices)) {
      one.value = state.get(name) ?? "";
      if (one.selectedIndex === -1) one.selectedIndex = 0;
    }
    filter();
  }

  function follow() {
    const address = decodeURIComponent(location.hash.slice(1));
    if (address.includes("=")) {
      choose(new URLSearchParams(location.hash.slice(1)));
      document.getElementById("claims").scrollIntoView();
      return;
    }
    const goal = address && document.getElementById(address);
    const claim = goal && goal.closest(".claim");
    if (claim) {
      if (claim.hidden) choose(new URLSearchParams());
      claim.querySelector("details").open = true;
      goal.scrollIntoView();
    }
  }

  form.addEventListener("input", () => { filter(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("reset").addEventListener("click", () => { choose(new URLSearchParams()); remember(); });
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Open rows";
    for (const { row, details } of claims) if (!row.hidden || !open) details.open = open;
    unfold.textContent = open ? "Close rows" : "Open rows";
  });

  for (const code of document.querySelectorAll(".command code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    code.parentElement.append(button);
  }

  form.hidden = false;
  addEventListener("hashchange", follow);
  filter();
  follow();
})();
