/**
 * CauseText is a text of the API with a cause beside it. It is in English, and may be for operators only, so it is no
 * string that a page could show: lib/cause.ts puts it together with its cause, and parts/told.tsx says that in the
 * reader's language. Its property does not exist.
 */
export interface CauseText {
  readonly onlyWithItsCause: true;
}
