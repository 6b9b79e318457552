/* The buttons of a server that was started with --control: marks, mutes and requests. */

function startControl(data, control, news, refresh) {
  if (!control) return;

  async function send(path, values) {
    news.textContent = "waiting for the server …";
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", "x-rlvitals-control": control.token },
      body: JSON.stringify({ key: data.key, ...values }),
    }).catch(() => null);
    const told = answer ? await answer.json().catch(() => ({ problem: "the server refused it" })) : { problem: "the server does not answer" };
    const text = told.done ?? [told.problem, told.hint].filter(Boolean).join("; ");
    news.textContent = text;
    setTimeout(() => { if (news.textContent === text) news.textContent = ""; }, 5000);
    if (answer?.ok) refresh();
  }

  const button = (text, act) => {
    const made = html("button", { type: "button", class: "button" }, text);
    made.addEventListener("click", act);
    return made;
  };

  /* A button that asks for a line of text first. */
  const asking = (text, label, act) => {
    const box = html("input", { type: "text", "aria-label": label, placeholder: label, maxlength: 200, required: "" });
    const form = html("form", {}, box, html("button", { class: "button" }, text));
    const folded = html("details", { class: "asking", name: "asking" }, html("summary", { class: "button" }, `${text} …`), form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      folded.open = false;
      act(box.value);
    });
    folded.addEventListener("toggle", () => folded.open && box.focus());
    return folded;
  };

  /* A button that is pressed twice: what it does cannot be taken back. */
  const confirming = (text, effect, confirmed, act) => {
    const folded = html("details", { class: "asking", name: "asking" }, html("summary", { class: "button" }, `${text} …`));
    folded.append(html("span", { class: "effect" }, effect), button(confirmed, () => { folded.open = false; act(); }));
    return folded;
  };

  const request = {
    save: () => button("Save a checkpoint", () => send("/api/request", { kind: "save" })),
    stop: () => confirming("Stop gently", "The training loop ends when it next looks.", "Stop the training", () => send("/api/request", { kind: "stop" })),
    "lower-rate": () => confirming("Lower the learning rate", "The training loop halves it when it next looks.", "Halve it", () => send("/api/request", { kind: "lower-rate" })),
    kill: () => confirming("Stop hard", "Its processes on the server's machine get SIGTERM, and SIGKILL after 30 s. What is not saved is lost.", "End its processes", () => send("/api/request", { kind: "kill" })),
  };
  const row = html("p", { class: "actions" },
    button("Mark healthy", () => send("/api/mark", { label: "healthy" })),
    asking("Mark broken", "the cause", (subject) => send("/api/mark", { label: "broken", subject })),
    ...control.requests.map((kind) => request[kind]()));
  document.querySelector("#vitals").append(row);

  const rules = new Set([...document.querySelectorAll("#run0-findings .finding > h4 code, #run0-findings .finding > details > summary code")].map((one) => one.textContent));
  for (const rule of rules) {
    actionsOf(rule)?.append(
      button("Wrong alarm", () => send("/api/mark", { label: "wrong", subject: rule })),
      asking("Mute", "why it is accepted", (reason) => send("/api/mute", { rule, reason })));
  }
  for (const item of document.querySelectorAll("[data-muted]")) {
    const rule = item.dataset.muted;
    if (control.mutes.includes(rule)) item.append(button("Unmute", () => send("/api/mute", { rule, undo: true })));
  }
}
