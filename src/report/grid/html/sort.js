"use strict";
const body = document.querySelector("tbody");
const heads = [...document.querySelectorAll("th")];
// Places without a value come last in both orders.
function compare(one, two, isNumber) {
  const lacks = (text) => text === "";
  if (lacks(one) || lacks(two)) return null;
  if (isNumber) return Number(one) - Number(two) || 0;
  return one === two ? 0 : one > two ? 1 : -1;
}
heads.forEach((head, column) => {
  head.firstChild.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const isNumber = head.className === "n";
    const keyed = [...body.rows].map((row) => [row.cells[column].textContent, row]);
    keyed.sort(([one], [two]) => {
      const order = compare(one, two, isNumber);
      return order === null ? Number(one === "") - Number(two === "") : sign * order;
    });
    body.append(...keyed.map(([, row]) => row));
  });
});
