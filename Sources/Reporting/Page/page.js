"use strict";
(() => {
  const form = document.getElementById("filters");
  const table = document.getElementById("table");
  if (!form || !table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
  const count = document.getElementById("count");
  const whole = count.textContent;
  const field = name => document.getElementById(name);
  const filter = () => {
    const words = field("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const severity = field("severity").value, kind = field("kind").value, currency = field("currency").value;
    const status = field("status").value, owner = field("owner").value, fresh = field("new").value;
    const least = field("amount").value === "" ? null : Number(field("amount").value);
    let shown = 0;
    for (const row of rows) {
      const data = row.dataset;
      const fits = (!severity || data.word === severity) && (!kind || data.kind === kind)
        && (!currency || data.currency === currency) && (!status || data.status === status)
        && (!owner || data.owner === (owner === "-" ? "" : owner)) && (!fresh || data.new === fresh)
        && (least === null || (data.stake !== "" && Number(data.stake) >= least))
        && words.every(word => texts.get(row).includes(word));
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    const text = number => number.toLocaleString("en-US");
    count.textContent = shown === rows.length ? whole : text(shown) + " of " + text(rows.length) + " shown. " + whole;
  };
  const order = { severity: 1, kind: 1, user: 1, stake: -1, days: -1, due: 1 };
  const value = (row, key) => {
    const text = row.dataset[key];
    if (key === "due") return text === "" ? null : text;
    return key === "kind" || key === "user" ? text : text === "" ? null : Number(text);
  };
  const sort = button => {
    const key = button.dataset.key, head = button.closest("th");
    const up = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : order[key] > 0;
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const sorted = rows.slice().sort((one, other) => {
      const left = value(one, key), right = value(other, key);
      if (left === right) return rows.indexOf(one) - rows.indexOf(other);
      if (left === null) return 1;
      if (right === null) return -1;
      return (left < right ? -1 : 1) * (up ? 1 : -1);
    });
    body.append(...sorted);
  };
  table.tHead.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button) sort(button);
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  form.hidden = false;
})();
