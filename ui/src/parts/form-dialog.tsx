// A form in a dialog: fields, an error above them unless one of them shows it,
// and one button that sends it.
import { Button, Form, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useId, type ReactNode } from 'react';
import { elsewhere } from '../api/fields';
import { useText } from '../i18n';
import { ErrorAlert } from './error';

interface Props {
  title: string;
  help?: string;
  action: string;
  busy: boolean;
  error: unknown;
  /** The paths of the fields that show their own errors. */
  shown: readonly string[];
  wide?: boolean;
  disabled?: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog({
  title,
  help,
  action,
  busy,
  error,
  shown,
  wide,
  disabled,
  onSubmit,
  onClose,
  children,
}: Props) {
  const { t } = useText();
  const id = useId();
  return (
    <Modal isOpen variant={wide ? 'medium' : 'small'} onClose={onClose} aria-labelledby={`${id}-title`}>
      <ModalHeader title={title} description={help} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={(e) => (e.preventDefault(), !busy && onSubmit())}>
          <ErrorAlert error={elsewhere(error, shown)} />
          {children}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isLoading={busy} isDisabled={busy || disabled}>
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {t('common.cancel')}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
