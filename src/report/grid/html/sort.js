"use strict";
const body = document.querySelector("tbody");
const heads = [...document.querySelectorAll("th")];
// Places without a value come last in both orders.
const number = (text) => Number(text.replace(/^(-?)inf$/, "$1Infinity"));
const lacks = (text, isNumber) => text === "" || (isNumber && text === "nan");
function compare(one, two, isNumber) {
  if (lacks(one, isNumber) || lacks(two, isNumber)) return null;
  if (isNumber) return number(one) - number(two) || 0;
  return one === two ? 0 : one > two ? 1 : -1;
}
heads.forEach((head, column) => {
  head.firstChild.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const keyed = [...body.rows].map((row) => [row.cells[column].textContent, row]);
    const isNumber = keyed.every(([text]) => lacks(text, true) || !Number.isNaN(number(text)));
    keyed.sort(([one], [two]) => {
      const order = compare(one, two, isNumber);
      return order === null ? lacks(one, isNumber) - lacks(two, isNumber) : sign * order;
    });
    body.append(...keyed.map(([, row]) => row));
  });
});
