// A password for an instance's default user, typed or generated.
import { Button, InputGroup, InputGroupItem, TextInput } from '@patternfly/react-core';
import { useText } from '../i18n';
import { generated, takesPassword } from '../lib/password';
import { describedBy, Field } from './field';

interface Props {
  value: string;
  set: (password: string) => void;
  /** The user data to which it would be added. */
  userData: string;
}

export function ConsolePassword({ value, set, userData }: Props) {
  const { t } = useText();
  const id = 'new-password';
  const takes = takesPassword(userData);
  return (
    <Field id={id} label={t('new.password')} help={takes ? t('new.passwordHelp') : t('new.passwordOwn')}>
      <InputGroup>
        <InputGroupItem isFill>
          <TextInput
            id={id}
            value={value}
            onChange={(_, v) => set(v)}
            isDisabled={!takes}
            autoComplete="off"
            spellCheck={false}
            maxLength={128}
            aria-describedby={describedBy(id)}
          />
        </InputGroupItem>
        <InputGroupItem>
          <Button variant="control" isDisabled={!takes} onClick={() => set(generated())}>
            {t('new.passwordMake')}
          </Button>
        </InputGroupItem>
      </InputGroup>
    </Field>
  );
}
