/* The sections of a run's page that are fetched when they come into sight: rollouts and console. */

function startRollouts(key) {
  const place = document.getElementById("rollouts");
  if (!place) return;
  const names = ["view", "step", "against"];
  const [view, step, against] = names.map((name) => document.getElementById(`rollout-${name}`));
  const wanted = new URLSearchParams(location.search);
  names.forEach((name, at) => {
    const choice = [view, step, against][at];
    if ([...choice.options].some((option) => option.value === wanted.get(name))) choice.value = wanted.get(name);
  });
  let number = 0;

  async function show(more = {}) {
    const wanted = new URLSearchParams({ key, view: view.value, step: step.value, against: against.value, ...more });
    const current = ++number;
    place.setAttribute("aria-busy", "true");
    const answer = await fetch(`/api/rollouts?${wanted}`).catch(() => null);
    if (!answer || current !== number) return;
    const told = await answer.json();
    place.setAttribute("aria-busy", "false");
    if (answer.ok) place.replaceChildren(...new DOMParser().parseFromString(told.html, "text/html").body.childNodes);
    else place.replaceChildren(html("p", { class: "about" }, [told.problem, told.hint].filter(Boolean).join("; ")));
  }

  const update = () => {
    against.parentElement.hidden = view.value !== "pairs";
    show();
  };
  for (const choice of [view, step, against]) {
    choice.addEventListener("change", () => {
      keepInAddress({ view: view.value, step: step.value, against: view.value === "pairs" ? against.value : null });
      update();
    });
  }
  place.addEventListener("click", (event) => {
    const group = event.target.closest?.("[data-group]")?.dataset.group;
    if (group !== undefined) show({ group });
  });
  against.parentElement.hidden = view.value !== "pairs";
  whenSeen(place, update);
  return { prove: (rule) => { view.selectedIndex = -1; show({ view: "proof", rule }); place.closest("section").scrollIntoView(); } };
}

function startConsole(key) {
  const [choice, place] = [document.getElementById("console-file"), document.getElementById("console")];
  if (!choice) return;
  async function show() {
    const answer = await fetch(`/api/console?${new URLSearchParams({ key, name: choice.value })}`).catch(() => null);
    if (!answer) return;
    place.textContent = answer.ok ? await answer.text() : (await answer.json()).problem;
    place.scrollTop = place.scrollHeight;
  }
  choice.addEventListener("change", show);
  whenSeen(place, show);
}

/* Call once, when an element comes near the screen. */
function whenSeen(place, call) {
  const sight = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    sight.disconnect();
    call();
  }, { rootMargin: "600px" });
  sight.observe(place);
}

/* Offer the samples that show a finding next to it. */
function offerProofs(rules, rollouts) {
  for (const rule of rollouts ? rules : []) {
    const button = html("button", { type: "button", class: "button" }, "samples that show it");
    button.addEventListener("click", () => rollouts.prove(rule));
    actionsOf(rule)?.append(button);
  }
}

/* Return the place for the buttons of a rule's finding; null where it has no finding. */
function actionsOf(rule) {
  const name = [...document.querySelectorAll(".finding code")].find((one) => one.textContent === rule);
  const article = name?.closest(".finding");
  if (!article) return null;
  let row = article.querySelector(":scope > .actions, :scope > details > .actions");
  if (!row) {
    row = html("p", { class: "actions" });
    const details = article.querySelector(":scope > details:only-child");
    const head = (details ?? article).querySelector(":scope > .when");
    head.after(row);
  }
  return row;
}
