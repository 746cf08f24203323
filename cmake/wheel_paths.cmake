# Passed as CMAKE_PROJECT_INCLUDE when ROS 2 comes from wheels. The wheels carry the Python include folder of
# the machine that built them (/opt/python/...) in the imported targets of their message packages; CMake stops
# at a folder that does not exist. The folders are struck out after the packages were found: no file of the
# virtual environment is changed.
function(fd_strike_wheel_builder_paths)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders "${target}" INTERFACE_INCLUDE_DIRECTORIES)
    if(folders MATCHES "/opt/python/")
      list(FILTER folders EXCLUDE REGEX "^/opt/python/")
      set_target_properties("${target}" PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL fd_strike_wheel_builder_paths)
