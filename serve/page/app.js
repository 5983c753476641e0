const app = document.getElementById("app");

async function show() {
  const answer = await fetch("api/v1/status", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  const status = await answer.json();
  app.textContent = answer.ok
    ? status.graphs.map((g) => g.id + ": " + g.creatures.map((c) => c.name + " " + c.state).join(", ")).join("\n")
    : status.detail + "; " + status.remedy;
}

show();
new EventSource("api/v1/events?kinds=topology_changed").addEventListener("topology_changed", show);
