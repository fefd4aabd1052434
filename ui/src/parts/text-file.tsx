// A field for the text of a file, such as a certificate: pasted, or loaded from a file.
import { Button } from '@patternfly/react-core';
import { useRef, useState } from 'react';
import { useText } from '../i18n';
import { TextField } from './text-field';

interface Props {
  id: string;
  label: string;
  help: string;
  path?: string;
  value: string;
  onChange: (text: string) => void;
  required?: boolean;
  rows: number;
  /** The maximum size of the file in bytes. */
  most: number;
  /** Names or types of files, as for an input's accept. */
  accept: string;
}

export function TextFileField({ id, label, most, accept, onChange, ...field }: Props) {
  const { t } = useText();
  const input = useRef<HTMLInputElement>(null);
  const [tooLarge, setTooLarge] = useState(false);
  const load = async (f: File | undefined) => {
    if (!f) return;
    setTooLarge(f.size > most);
    if (f.size <= most) onChange(await f.text());
  };
  return (
    <div className="basalt-stack">
      <TextField id={id} label={label} onChange={(v) => (setTooLarge(false), onChange(v))} {...field} />
      <input
        ref={input}
        type="file"
        accept={accept}
        hidden
        data-file={id}
        aria-label={t('form.fileOf', { field: label })}
        onChange={(e) => {
          void load(e.currentTarget.files?.[0]);
          e.currentTarget.value = '';
        }}
      />
      <div>
        <Button
          variant="secondary"
          size="sm"
          aria-label={t('form.fileOf', { field: label })}
          onClick={() => input.current?.click()}
        >
          {t('form.file')}
        </Button>{' '}
        <span role="alert">{tooLarge && t('form.fileTooLarge', { kib: Math.floor(most / 1024) })}</span>
      </div>
    </div>
  );
}
