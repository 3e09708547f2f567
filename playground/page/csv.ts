// Pasted tables: from spreadsheets, with tabs or semicolons and decimal commas, and from CSV files.

export interface Table {
  /** The table as CSV with commas, decimal points and a header. */
  text: string;
  columns: string[];
  /** Why the table can't be used. */
  problem?: string;
}

/** The rows of a table. Cells in quotes can contain separators and line breaks. */
function rowsOf(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endCell = (): void => {
    row.push(cell.trim());
    cell = "";
  };
  const endRow = (): void => {
    endCell();
    if (row.some((it) => it !== "")) rows.push(row);
    row = [];
  };
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (text[index + 1] === '"') [cell, index] = [`${cell}"`, index + 1];
      else isQuoted = false;
    } else if (character === '"' && cell.trim() === "") {
      [cell, isQuoted] = ["", true];
    } else if (character === separator) {
      endCell();
    } else if (character === "\n") {
      endRow();
    } else {
      cell += character;
    }
  }
  endRow();
  return rows;
}

/** `1,5`, `1.234,5`, `-0,25`; also `1,234`, which can mean two numbers. */
const WITH_COMMA = /^-?(\d+|\d{1,3}(\.\d{3})+),\d+$/;
/** `1,234` or `12,345,678`: groups of three digits. */
const GROUPED = /^-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/;

const isNumber = (cell: string): boolean => cell !== "" && !Number.isNaN(Number(cell));

type Comma = "decimal" | "grouping" | "unclear" | "none";

/** What the commas in the numbers of a table mean. */
function commasOf(cells: string[]): Comma {
  const withComma = cells.filter((cell) => WITH_COMMA.test(cell) || GROUPED.test(cell));
  if (withComma.length === 0) return "none";
  if (withComma.some((cell) => !GROUPED.test(cell))) return "decimal";
  const hasPoint = cells.some((cell) => /^-?[\d,]*\.\d+$/.test(cell));
  const hasGroups = withComma.some((cell) => cell.split(",").length > 2);
  return hasPoint || hasGroups ? "grouping" : "unclear";
}

function withPoint(cell: string, comma: Comma): string {
  if (comma === "decimal" && WITH_COMMA.test(cell)) return cell.replaceAll(".", "").replace(",", ".");
  if (comma === "grouping" && GROUPED.test(cell)) return cell.replaceAll(",", "");
  return cell;
}

const quoted = (cell: string): string => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** The separator of the first line: a tab, a semicolon or a comma. */
function separatorOf(line: string): string {
  if (line.includes("\t")) return "\t";
  return line.includes(";") ? ";" : ",";
}

/** Reads a table. A table without a header gets one. */
export function readTable(pasted: string): Table {
  const lines = pasted.replaceAll("\r\n", "\n").split("\n").filter((line) => !line.startsWith("#"));
  const first = lines.find((line) => line.trim() !== "") ?? "";
  const rows = rowsOf(lines.join("\n"), separatorOf(first));
  const head = rows[0] ?? [];
  if (head.length < 2) {
    return { text: pasted, columns: [], problem: "The text has fewer than two columns: times and values, separated by commas, semicolons or tabs." };
  }
  const comma = commasOf(rows.flat());
  if (comma === "unclear") {
    const example = rows.flat().find((cell) => GROUPED.test(cell)) ?? "";
    return { text: pasted, columns: head, problem: `It is not clear whether ${example} means ${example.replace(",", ".")} or ${example.replaceAll(",", "")}: write numbers with a decimal point and without groups of digits.` };
  }
  const cells = rows.map((row) => row.map((cell) => withPoint(cell, comma)));
  const hasHeader = !(cells[0] ?? []).every(isNumber);
  const names = head.map((_, index) => (index === 0 ? "time" : index === 1 ? "value" : `value${index}`));
  if (!hasHeader) cells.unshift(names);
  const text = cells.map((row) => row.map(quoted).join(",")).join("\n");
  return { text: `${text}\n`, columns: hasHeader ? head : names };
}
