"""What a crawl is worth: value functions, their inverses and the special functions behind them.

Each module holds one setting: `freshness`, `harmonic`, `captures` (WIC),
`sources` (ECHO), `uncertain` (the change rate is only believed), `noisy_freshness` (NCIS) and `noisy_harmonic`.
Their public functions take and give arrays: `…_value` is what a crawl now is worth, `…_due` when that reaches a
price. Kernels for use inside other kernels stand beside them (`…_kernel`) and in `shapes` and `special`. To add a
setting, write a module with such a pair; `shapes` has the two forms that most share.
"""
