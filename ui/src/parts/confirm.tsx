// Asks before an action; a dangerous one wants the name of its object typed.
import { useState } from 'react';
import { useText } from '../i18n';
import { FormDialog } from './form-dialog';
import { TextField } from './text-field';

interface Props {
  title: string;
  help: string;
  action: string;
  danger?: boolean;
  /** Text that has to be typed; nothing unless given. */
  name?: string;
  busy: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

export function Confirm({ help, name, onConfirm, ...dialog }: Props) {
  const { t } = useText();
  const [typed, setTyped] = useState('');
  const sure = name === undefined || typed.trim() === name;
  return (
    <FormDialog help={help} disabled={!sure} onSubmit={() => sure && onConfirm()} {...dialog}>
      {name !== undefined && (
        <TextField id="confirm-name" label={t('one.deleteConfirm', { name })} value={typed} onChange={setTyped} />
      )}
    </FormDialog>
  );
}
