<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** The module's texts in the reader's language, or English if there is no translation. */
final class Lang
{
    /** @var array<string,array<string,string>> */
    private static array $read = [];

    /** @return array<string,string> */
    public static function words(string $language): array
    {
        $language = preg_match('/^[a-z-]{1,40}$/', $language) ? $language : 'english';
        return self::file($language) + self::file('english');
    }

    public static function text(string $key, string $otherwise = ''): string
    {
        return self::words(self::current())[$key] ?? ($otherwise !== '' ? $otherwise : $key);
    }

    public static function current(): string
    {
        $of = $_SESSION['Language'] ?? $_SESSION['adminlang'] ?? $GLOBALS['CONFIG']['Language'] ?? 'english';
        return is_string($of) ? strtolower($of) : 'english';
    }

    /** @return array<string,string> */
    private static function file(string $language): array
    {
        if (!isset(self::$read[$language])) {
            $file = dirname(__DIR__) . "/lang/$language.php";
            self::$read[$language] = is_file($file) ? (array) require $file : [];
        }
        return self::$read[$language];
    }
}
