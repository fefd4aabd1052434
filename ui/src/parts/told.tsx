// Why an object is not as it was requested: in the reader's language, and for operators with the details.
import { QueryClientContext } from '@tanstack/react-query';
import { use } from 'react';
import { may, sessionKey, type Session } from '../api/session';
import { useText } from '../i18n';
import { tellIn, type Told } from '../lib/cause';

/** useTell returns a function that turns a text and its cause into words for the reader. */
export function useTell(): (told: Told) => string {
  const words = useText();
  const session = use(QueryClientContext)?.getQueryData<Session>(sessionKey);
  const operator = Boolean(session && may(session, 'operator'));
  return (of) => tellIn(words, of, operator);
}

/** Note shows a text in small type. */
export function Note({ of }: { of: Told }) {
  const tell = useTell();
  return <span className="basalt-note">{tell(of)}</span>;
}
