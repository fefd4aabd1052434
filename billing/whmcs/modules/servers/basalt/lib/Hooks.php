<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

use WHMCS\Database\Capsule;

/**
 * Hooks for changes after which WHMCS calls no module function by itself. Each runs
 * Change Package for the affected services, which updates basaltd if necessary.
 */
final class Hooks
{
    /** @param array<string,mixed> $vars of ClientEdit */
    public static function clientEdit(array $vars): void
    {
        $old = is_array($vars['olddata'] ?? null) ? $vars['olddata'] : [];
        foreach (['email', 'firstname', 'lastname', 'companyname'] as $field) {
            if (isset($vars[$field]) && (string) $vars[$field] !== (string) ($old[$field] ?? '')) {
                self::changed(['tblhosting.userid' => (int) ($vars['userid'] ?? 0)], ['Active', 'Suspended']);
                return;
            }
        }
    }

    /** @param array<string,mixed> $vars of ProductEdit */
    public static function productEdit(array $vars): void
    {
        self::changed(['tblhosting.packageid' => (int) ($vars['pid'] ?? 0)], ['Active', 'Suspended']);
    }

    /** @param array<string,mixed> $vars of ServiceEdit, including its configurable options */
    public static function serviceEdit(array $vars): void
    {
        self::changed(['tblhosting.id' => (int) ($vars['serviceid'] ?? 0)], ['Active', 'Suspended']);
    }

    /** Bills the last month for products with a line for each machine. */
    public static function daily(): void
    {
        foreach (self::services(['tblproducts.configoption' . self::number('invoice') => 'machines'], ['Active', 'Suspended', 'Terminated', 'Cancelled', 'Completed']) as $id) {
            self::call('ModuleCustom', ['serviceid' => $id, 'func_name' => 'bill']);
        }
    }

    private static function number(string $option): int
    {
        return (int) array_search($option, Order::OPTIONS, true) + 1;
    }

    /**
     * @param array<string,int|string> $where
     * @param array<int,string> $states
     */
    private static function changed(array $where, array $states): void
    {
        foreach (self::services($where, $states) as $id) {
            self::call('ModuleChangePackage', ['serviceid' => $id]);
        }
    }

    /**
     * @param array<string,int|string> $where
     * @param array<int,string> $states
     * @return array<int,int>
     */
    private static function services(array $where, array $states): array
    {
        $query = Capsule::table('tblhosting')->join('tblproducts', 'tblproducts.id', '=', 'tblhosting.packageid')->where('tblproducts.servertype', 'basalt');
        foreach ($where as $column => $value) {
            $query = $query->where($column, $value);
        }
        return array_map('intval', $query->whereIn('tblhosting.domainstatus', $states)->pluck('tblhosting.id')->all());
    }

    /** @param array<string,mixed> $values */
    private static function call(string $command, array $values): void
    {
        $answer = localAPI($command, $values);
        if (($answer['result'] ?? '') !== 'success') {
            logActivity("Basalt: $command of service {$values['serviceid']}: " . (string) ($answer['message'] ?? 'no answer'));
        }
    }
}
