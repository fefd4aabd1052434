// A form in a dialog: fields with their errors, and one button that sends them.
import { Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useId, type ReactNode } from 'react';
import { useText } from '../i18n';
import { Form, type Checked } from './form';

interface Props extends Checked {
  title: string;
  help?: string;
  action: string;
  wide?: boolean;
  danger?: boolean;
  disabled?: boolean;
  /** The text of the button that closes it; unless given, Cancel. */
  leave?: string;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog({
  title,
  help,
  action,
  wide,
  danger,
  disabled,
  leave,
  onClose,
  children,
  ...checked
}: Props) {
  const { t } = useText();
  const id = useId();
  return (
    <Modal isOpen variant={wide ? 'medium' : 'small'} onClose={onClose} aria-labelledby={`${id}-title`}>
      <ModalHeader
        title={title}
        description={help}
        labelId={`${id}-title`}
        titleIconVariant={danger ? 'warning' : undefined}
      />
      <ModalBody>
        <Form id={id} long={wide} {...checked}>
          {children}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form={id}
          variant={danger ? 'danger' : 'primary'}
          isLoading={checked.busy}
          isDisabled={checked.busy || disabled}
        >
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {leave ?? t('common.cancel')}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
