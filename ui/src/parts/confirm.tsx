import { Button, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useText } from '../i18n';
import { ErrorAlert } from './error';
import { Field } from './field';

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

export function Confirm({ title, help, action, danger, name, busy, error, onConfirm, onClose }: Props) {
  const { t } = useText();
  const [typed, setTyped] = useState('');
  const sure = name === undefined || typed === name;
  return (
    <Modal isOpen variant="small" onClose={onClose} aria-labelledby="confirm-title" aria-describedby="confirm-help">
      <ModalHeader title={title} labelId="confirm-title" titleIconVariant={danger ? 'warning' : undefined} />
      <ModalBody id="confirm-help">
        <form
          id="confirm"
          className="basalt-stack"
          onSubmit={(e) => (e.preventDefault(), sure && !busy && onConfirm())}
        >
          <p>{help}</p>
          {name !== undefined && (
            <Field id="confirm-name" label={t('one.deleteConfirm', { name })}>
              <TextInput
                id="confirm-name"
                value={typed}
                onChange={(_, v) => setTyped(v)}
                autoComplete="off"
                spellCheck={false}
              />
            </Field>
          )}
          <ErrorAlert error={error} />
        </form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form="confirm"
          variant={danger ? 'danger' : 'primary'}
          isDisabled={!sure}
          isLoading={busy}
        >
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {t('common.cancel')}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
