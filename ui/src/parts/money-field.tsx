// A field for an amount of money.
import { useState } from 'react';
import { decimal, parseMicros } from '../lib/amount';
import { TextField } from './text-field';

interface Props {
  id: string;
  label: string;
  help?: string;
  path: string;
  /** The amount at first, in millionths of the currency; zero and undefined are shown as an empty field. */
  micros: number | undefined;
  /** Receives undefined if the field is empty, and NaN if its text is not an amount. */
  onChange: (micros: number | undefined) => void;
  required?: boolean;
}

/** MoneyField edits an amount as text. */
export function MoneyField({ micros, onChange, ...field }: Props) {
  const [text, setText] = useState(micros ? decimal(micros) : '');
  const change = (next: string) => {
    setText(next);
    onChange(next.trim() === '' ? undefined : (parseMicros(next) ?? NaN));
  };
  return <TextField {...field} value={text} onChange={change} />;
}

/** moneyText returns an amount of a MoneyField for a command line; empty if there is none. */
export const moneyText = (micros: number | undefined) =>
  micros === undefined || Number.isNaN(micros) ? '' : decimal(micros);
