// Quantities of usage above 2^53 base units, such as the byte-seconds of a month, which JavaScript's numbers do not hold
// exactly: the text of a response has all their digits.

/** Where responses have quantities of usage. They are only read: a field that the API does not know is not sent back. */
const paths = /\/v1\/(usage|invoices|invoice-preview|invoice-explanation)(\/|$)/;

/** An integer that may be too large. JSON's strings cannot contain the key: their quotes are escaped. */
const large = /"quantity":(-?\d{16,})(?=[,}])/g;

/** withExact adds a field quantityExact with all digits to the objects of a JSON text whose quantity is too large. */
export const withExact = (json: string) =>
  json.replace(large, (field, digits: string) =>
    Number.isSafeInteger(Number(digits)) ? field : `${field},"quantityExact":"${digits}"`,
  );

/** keepQuantities returns a response in which quantityOf finds exact quantities. */
export async function keepQuantities(request: Request, response: Response): Promise<Response> {
  const json = response.headers.get('Content-Type')?.startsWith('application/json');
  if (request.method !== 'GET' || !response.ok || !json || !paths.test(new URL(request.url).pathname)) return response;
  return new Response(withExact(await response.text()), { status: response.status, headers: response.headers });
}

/** quantityOf returns the quantity of an object of a response, exactly if its text has it. */
export function quantityOf(o: { quantity?: number; quantityExact?: string }): number | bigint {
  return o.quantityExact === undefined ? (o.quantity ?? 0) : BigInt(o.quantityExact);
}
